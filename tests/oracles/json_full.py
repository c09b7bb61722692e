"""What the peeks should say, found by parsing the whole text with the standard library."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Path = tuple[str, ...]


class Members(list[tuple[str, Any]]):
    """An object as the list of its members, so that none is lost to another of its name."""


class Constant(ValueError):
    """NaN, Infinity or -Infinity: no JSON."""


@dataclass
class Full:
    """A parsed text. `depth`: containers within one another."""

    value: Any
    depth: int

    def at(self, path: Path) -> list[Any]:
        """The value at a path, in a list; empty when there is none. Of members of one name the last one counts."""
        value = self.value
        for name in path:
            found = [item for key, item in value if key == name] if isinstance(value, Members) else []
            if not found:
                return []
            value = found[-1]
        return [value]

    def duplicate(self, paths: Iterable[Path]) -> bool:
        """Whether a member at one of the paths stands more than once in one object."""
        return any(_twice(self.value, path) for path in paths)


def _twice(value: Any, path: Path) -> bool:
    if not isinstance(value, Members):
        return False
    found = [item for key, item in value if key == path[0]]
    if len(path) == 1:
        return len(found) > 1
    return any(_twice(item, path[1:]) for item in found)


def _refuse(name: str) -> Any:
    raise Constant(name)


def _depth(value: Any) -> int:
    """Without recursion: the texts of a fuzzer are deep."""
    deepest, todo = 0, [(value, 1)]
    while todo:
        item, depth = todo.pop()
        if isinstance(item, list):
            deepest = max(deepest, depth)
            todo += [(inner[1] if isinstance(item, Members) else inner, depth + 1) for inner in item]
    return deepest


def full(text: bytes) -> Full | None:
    """Parse strictly; None when it is no JSON text in UTF-8."""
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=Members, parse_constant=_refuse)
    except (UnicodeDecodeError, ValueError):
        return None
    return Full(value, _depth(value))


def whole(value: object) -> int:
    """A token count as the peeks tell it: -1 for all but whole numbers of 1 to 18 digits."""
    return value if type(value) is int and 0 <= value < 10**18 else -1
