"""`routeGroups[]`: routes that other routes delegate to.

A route that has a group among its backends hands requests on: matching goes on in the routes of the group. These are
built once for each way that leads to them, because they inherit: the policies of the routes in front of them, outermost
first, are weaker layers of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from headgate.config.check import Record
from headgate.config.context import Context, Notes
from headgate.config.targeted import Unused
from headgate.document.lazy_dataclass import dataclass
from headgate.errors import Problem

if TYPE_CHECKING:
    from headgate.config.routes import Routes, RouteSpec

# Groups in front of a route, at most; and routes that one route may lead to, over all ways.
MAX_DEPTH: Final = 8
MAX_ROUTES: Final = 10_000
CYCLE: Final = "route delegation cycle detected"


@dataclass(slots=True)
class Group:
    """A group with its routes, and the notes of all that was read for them. `size`: the routes that it leads to."""

    record: Record
    specs: list[RouteSpec]
    notes: Notes
    size: int = 0


def delegations(spec: RouteSpec) -> Iterator[tuple[Record, str]]:
    """Yield the entries of a route that name a group, with the name."""
    for record in spec.records:
        name = record.get("routeGroup")
        if name is not None:
            yield record, name


def _scope(name: str) -> str:
    """Return the name of a group as part of the keys of its routes."""
    return name.replace("/", "|")


def mark_of(name: str) -> str:
    """Return what stands for a group among the parts of a text that others use (Notes.used)."""
    return f"routeGroups ({name})"


class RouteGroups:
    """The groups of a file by name."""

    def __init__(self, context: Context, routes: Routes) -> None:
        self._context = context
        self._routes = routes
        self.by_name: dict[str, Group] = {}
        # Whether no group leads back to itself, and none too far: what they lead to can be built.
        self.sound = True

    def declare(self, records: list[Record]) -> None:
        """Read all groups. Groups may refer to each other in any order."""
        names = [record["name"] for record in records]
        self._routes.backends.groups = frozenset(names)
        for record in records:
            name = record["name"]
            if not name:
                self._context.fault(Problem.VALUE, record, "name", "a route group needs a name")
            elif name in self.by_name:
                self._context.fault(Problem.CONFLICT, record, "name", f"route group {name!r} is declared twice")
            else:
                specs, notes = self._context.noted(self._specs, name, record)
                self.by_name[name] = Group(record, specs, notes)
                # Whoever delegates to it or not: its files are watched, and what is odd in it is told.
                self._context.watched.update(notes.watched)
                self._context.warnings.extend(notes.warnings)
        self._measure()

    def _specs(self, name: str, record: Record) -> list[RouteSpec]:
        return [
            self._routes.of_group(entry, index, f"group/{_scope(name)}")
            for index, entry in enumerate(record.records("routes"))
        ]

    def _measure(self) -> None:
        """Find how many routes each group leads to. Reports groups that lead back to themselves or too far."""
        done: dict[str, tuple[int, int]] = {}
        for name in self.by_name:
            self._visit(name, {}, done)
        for name, group in self.by_name.items():
            group.size, depth = done.get(name, (0, 0))
            if depth > MAX_DEPTH:
                self._too_much(group.record, f"more than {MAX_DEPTH} groups lead to each other")
            elif group.size > MAX_ROUTES:
                self._too_much(group.record, f"it leads to {group.size} routes, more than {MAX_ROUTES}")

    def _too_much(self, record: Record, message: str) -> None:
        self.sound = False
        self._context.fault(Problem.CONFLICT, record, "routes", message)

    def _visit(self, name: str, above: dict[str, None], done: dict[str, tuple[int, int]]) -> tuple[int, int]:
        """Return how many routes a group leads to, and through how many groups."""
        if name in done or name not in self.by_name:
            return done.get(name, (0, 0))
        size, depth = 0, 1
        inside = {**above, name: None}
        for spec in self.by_name[name].specs:
            size += 1
            for record, other in delegations(spec):
                if other in inside:
                    way = " > ".join((*list(inside)[list(inside).index(other) :], other))
                    self.sound = False
                    self._context.fault(Problem.CONFLICT, record, "routeGroup", f"{CYCLE}: {way}")
                    continue
                if len(inside) > MAX_DEPTH:
                    depth = MAX_DEPTH + 1
                    continue
                found, deep = self._visit(other, inside, done)
                size, depth = size + found, max(depth, deep + 1)
        done[name] = size, depth
        return size, depth

    def used(self, record: Record, name: str) -> Group | None:
        """Return the group that a route delegates to; None without one. What is being read depends on it."""
        self._context.notes.used.add(mark_of(name))
        group = self.by_name.get(name)
        if group is None:
            told = f"{record.path}.routeGroup: no route group is named {name!r}: requests to it get 404"
            self._context.warnings.append(told)
            return None
        # Its files and warnings are told already.
        self._context.notes.expressions.update(group.notes.expressions)
        self._context.notes.used |= group.notes.used
        self._context.notes.backends |= group.notes.backends
        self._context.notes.services |= group.notes.services
        return group

    def about_unused(self) -> dict[str, Unused]:
        """Return what to say of each group that no route delegates to."""
        return {mark_of(name): Unused("no route delegates to it", refused=False) for name in self.by_name}
