"""Members of a JSON text replaced in place: what is not replaced stays byte for byte."""

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


def with_members(text: bytes, path: tuple[str, ...], more: dict[str, object]) -> bytes:
    """Return the JSON text with those of `more` that the object at a path does not have; as it is without such an
    object.
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
    """Return the JSON text without those members of the object at a path; as it is without such an object."""
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
    """Yield key, start of the key and end of the value of each member of the object at `at`."""
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
