"""Members of a JSON text replaced in place: what is not replaced stays byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator

_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"


def _skip(text: str, at: int) -> int:
    while text[at] in _BLANK:
        at += 1
    return at


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yield key, start and end of each member of the object at `at`; ValueError or IndexError for what is none."""
    if text[at] != "{":
        raise ValueError("not an object")
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError("not JSON")
        start = _skip(text, at + 1)
        _, stop = _DECODER.raw_decode(text, start)
        yield key, start, stop
        at = _skip(text, stop)
        if text[at] == ",":
            at = _skip(text, at + 1)


def raw_member(text: bytes, key: str) -> bytes | None:
    """Return the bytes of a member of the JSON text, None when there is none; of members that stand twice the last."""
    plain = text.decode()
    found = None
    try:
        for name, start, stop in _members(plain, _skip(plain, 0)):
            if name == key:
                found = plain[start:stop]
    except (ValueError, IndexError):
        return None
    return None if found is None else found.encode()


def replaced(text: bytes, path: tuple[str, ...], value: object) -> bytes:
    """Return the JSON text with another value at a path of object members; as it is when there is no such member.

    The text is known to be JSON (headgate_engine.peek). Of members that stand twice the last one is replaced.
    """
    plain = text.decode()
    at, end = _skip(plain, 0), len(plain)
    for key in path:
        found = None
        try:
            for name, start, stop in _members(plain, at):
                if name == key:
                    found = (start, stop)
        except (ValueError, IndexError):
            return text
        if found is None:
            return text
        at, end = found
    return (plain[:at] + json.dumps(value, ensure_ascii=False, separators=(",", ":")) + plain[end:]).encode()
