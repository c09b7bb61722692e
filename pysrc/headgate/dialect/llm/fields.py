"""Readers of JSON members that check the type. They raise Untranslatable for a wrong type; null counts as missing.

`at` is the path of the holder, for error messages.
"""

from __future__ import annotations

import math
from typing import Any

from headgate.dialect.llm.contract import Json, Untranslatable


def words(text: str) -> frozenset[str]:
    """Return the set of the words (field names) in a text."""
    return frozenset(text.split())


def _wrong(at: str, name: str, what: str) -> Untranslatable:
    return Untranslatable(f"{at}.{name}" if at else name, f"must be {what}")


def text(holder: Json, name: str, at: str = "") -> str | None:
    """Return a string, None if it is missing."""
    found = holder.get(name)
    if found is None or isinstance(found, str):
        return found
    raise _wrong(at, name, "a string")


def needed_text(holder: Json, name: str, at: str = "") -> str:
    """Return a mandatory string. Raises Untranslatable if it is missing."""
    found = text(holder, name, at)
    if found is None:
        raise Untranslatable(f"{at}.{name}" if at else name, "is missing")
    return found


def flag(holder: Json, name: str, at: str = "") -> bool | None:
    """Return a boolean, None if it is missing."""
    found = holder.get(name)
    if found is None or isinstance(found, bool):
        return found
    raise _wrong(at, name, "a boolean")


def integer(holder: Json, name: str, at: str = "") -> int | None:
    """Return an integer, None if it is missing. A number such as 12.0 counts as an integer."""
    found = holder.get(name)
    if isinstance(found, float) and math.isfinite(found) and found == int(found):
        return int(found)
    if found is None or (isinstance(found, int) and not isinstance(found, bool)):
        return found
    raise _wrong(at, name, "an integer")


def number(holder: Json, name: str, at: str = "") -> int | float | None:
    """Return a number, None if it is missing."""
    found = holder.get(name)
    if found is None or (isinstance(found, int | float) and not isinstance(found, bool)):
        return found
    raise _wrong(at, name, "a number")


def obj(holder: Json, name: str, at: str = "") -> Json | None:
    """Return an object, None if it is missing."""
    found = holder.get(name)
    if found is None or isinstance(found, dict):
        return found
    raise _wrong(at, name, "an object")


def items(holder: Json, name: str, at: str = "") -> list[Any]:
    """Return an array, [] if it is missing."""
    found = holder.get(name)
    if found is None:
        return []
    if isinstance(found, list):
        return found
    raise _wrong(at, name, "an array")


def objects(holder: Json, name: str, at: str = "") -> list[Json]:
    """Return an array of objects, [] if it is missing."""
    found = items(holder, name, at)
    for position, item in enumerate(found):
        if not isinstance(item, dict):
            raise _wrong(at, f"{name}[{position}]", "an object")
    return found


def texts(holder: Json, name: str, at: str = "") -> list[str]:
    """Return an array of strings, [] if it is missing. A single string gives an array of one."""
    found = holder.get(name)
    if isinstance(found, str):
        return [found]
    for position, item in enumerate(items(holder, name, at)):
        if not isinstance(item, str):
            raise _wrong(at, f"{name}[{position}]", "a string")
    return found or []


def copy(source: Json, target: Json, names: dict[str, str]) -> None:
    """Copy members that are not null; `names` maps source names to target names. Their types are not checked."""
    for name, other in names.items():
        found = source.get(name)
        if found is not None:
            target[other] = found
