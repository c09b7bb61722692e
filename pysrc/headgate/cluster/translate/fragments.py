"""Fragments of the file's model: what a change of one object moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]
# Ends the name of a route that stands in a group for one backend of another route.
INNER: Final = "/mirrored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A part of the file, such as a listener without its routes.

    `key`: its name among all of a gateway, `<kind>/...`. `parent`: the key of what it stands in, "" at the top.
    `place`: the list that it stands in there. `order`: where in the list; of equal ones the keys decide.
    """

    key: str
    place: str
    value: Json
    parent: str = ""
    order: tuple[Any, ...] = field(default=())


def assembled(fragments: Iterable[Fragment]) -> Json:
    """Return the file that the fragments make together, the same for any order of them.

    Raises KeyError if the parent of one is missing.
    """
    known = sorted(fragments, key=lambda one: (one.place, one.order, one.key))
    values: dict[str, Json] = {"": {}}
    values.update((one.key, dict(one.value)) for one in known)
    for one in known:
        values[one.parent].setdefault(one.place, []).append(values[one.key])
    found: Json = assembled_value(values[""])
    return found


def assembled_value(value: Any) -> Any:
    """Return a value as a file has it, where `$` begins the name of a variable of the gateway's environment.

    Nobody who writes a resource may read one.
    """
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, dict):
        return {assembled_value(key): assembled_value(one) for key, one in value.items()}
    return [assembled_value(one) for one in value] if isinstance(value, list | tuple) else value
