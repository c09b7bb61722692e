"""Changes of single members in a JSON text. All other bytes are kept."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"


def _skip(text: str, at: int) -> int:
    while text[at] in _BLANK:
        at += 1
    return at


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key, and the start and end of the value, of each member of the object at `at`.

    Raises ValueError or IndexError if there is no valid object.
    """
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


def with_members(text: bytes, path: tuple[str, ...], more: dict[str, object]) -> bytes:
    """Return the JSON text with the members of `more` added that the object at `path` does not have.

    The text is unchanged if there is no object at `path`.
    """
    plain = text.decode()
    try:
        at = _skip(plain, 0)
        for key in path:
            at = [start for name, start, _ in _members(plain, at) if name == key][-1]
        there = {name for name, _, _ in _members(plain, at)}
    except (ValueError, IndexError):
        return text
    added = {key: value for key, value in more.items() if key not in there}
    if not added:
        return text
    inner = json.dumps(added, ensure_ascii=False, separators=(",", ":"))[1:-1]
    return (plain[: at + 1] + inner + ("," if there else "") + plain[at + 1 :]).encode()


def without_members(text: bytes, path: tuple[str, ...], names: Collection[str]) -> bytes:
    """Return the JSON text without the named members of the object at `path`.

    The text is unchanged if there is no object at `path`.
    """
    plain = text.decode()
    try:
        at = _skip(plain, 0)
        for key in path:
            at = [start for name, start, _ in _members(plain, at) if name == key][-1]
        spans = list(_spans(plain, at))
    except (ValueError, IndexError):
        return text
    if not any(name in names for name, _, _ in spans):
        return text
    end = _skip(plain, spans[-1][2])
    kept = ",".join(plain[start:stop] for name, start, stop in spans if name not in names)
    return (plain[: at + 1] + kept + plain[end:]).encode()


def _spans(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key, the start of the key and the end of the value of each member of the object at `at`."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        start = at
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError("not JSON")
        _, stop = _DECODER.raw_decode(text, _skip(text, at + 1))
        yield key, start, stop
        at = _skip(text, stop)
        if text[at] == ",":
            at = _skip(text, at + 1)


def raw_member(text: bytes, key: str) -> bytes | None:
    """Return the bytes of a member's value, None if there is no such member. The last of duplicate members counts."""
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
    """Return the JSON text with the value at `path` replaced. It is unchanged if there is no such member.

    The text must be valid JSON (headgate_engine.peek). The last of duplicate members is replaced.
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
