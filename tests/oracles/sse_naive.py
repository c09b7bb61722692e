"""An event stream read the simple way: the whole text, split into lines (WHATWG HTML section 9.2.6)."""

from __future__ import annotations

import re

Naive = tuple[str, bytes, str | None, int | None]
MAX_RETRY = 2**53 - 1


def naive(stream: bytes) -> tuple[list[Naive], str]:
    """The events of a stream, and the last event id when it ends."""
    *lines, _unfinished = re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf"))
    found: list[Naive] = []
    last_id = ""
    event, event_id, retry = b"", None, None
    data: list[bytes] = []
    pending_id: str | None = None
    for line in lines:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if line == b"":
            last_id = last_id if pending_id is None else pending_id
            if data:
                found.append((event.decode("utf-8", "replace") or "message", b"\n".join(data), event_id, retry))
            event, data, event_id, retry, pending_id = b"", [], None, None, None
        elif name == b"data":
            data.append(value)
        elif name == b"event":
            event = value
        elif name == b"id" and b"\0" not in value:
            event_id = pending_id = value.decode("utf-8", "replace")
        elif name == b"retry" and re.fullmatch(rb"[0-9]+", value):
            digits = value.lstrip(b"0")[:20]
            retry = min(int(digits or b"0"), MAX_RETRY)
    return found, last_id
