"""Fragments of the file's model: what a change of one object moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

Json = dict[str, Any]
# Ends the name of a route that stands in a group for one backend of another route.
INNER: Final = "/mirrored"


def group_key(name: str) -> str:
    """Return the key of a route group."""
    return f"group/{name}"


class Called(NamedTuple):
    """What is called: ports of services by `<namespace>/<host>`, and named backends."""

    services: frozenset[tuple[str, int]]
    backends: frozenset[str]


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
    # What it calls, once somebody has looked: a fragment stays the same object while it does not change.
    _known_calls: list[Called] = field(default_factory=list, init=False, repr=False, compare=False)

    def called(self) -> Called:
        """Return what it calls."""
        if not self._known_calls:
            services: set[tuple[str, int]] = set()
            backends: set[str] = set()
            _walk(self.value, services, backends)
            self._known_calls.append(Called(frozenset(services), frozenset(backends)))
        return self._known_calls[0]


def _walk(value: Any, services: set[tuple[str, int]], backends: set[str]) -> None:
    if isinstance(value, list):
        for one in value:
            _walk(one, services, backends)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name == "service" and isinstance(one, dict) and "port" in one and "name" in one:
                services.add((one["name"], one["port"]))
            elif name == "backend" and isinstance(one, str):
                backends.add(one)
            else:
                _walk(one, services, backends)


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
