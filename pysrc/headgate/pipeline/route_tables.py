"""Builds the route tables of a listener: its own, and one for each delegation to a route group."""

from __future__ import annotations

from operator import is_

from headgate.document.hunks import hunks
from headgate.pipeline.running import STEP, CompiledListener, CompiledRoute, Steps
from headgate_engine.route.table import RouteTable


def route_tables(found: CompiledListener, before: CompiledListener | None) -> Steps[RouteTable]:
    """Return the route table of a listener, and prepare those of its groups."""
    found.parts = yield from found.by_parent()
    same_scheme = before is not None and before.scheme == found.scheme
    for parent, entries in found.parts.items():
        earlier = before.parts.get(parent, []) if before is not None and same_scheme else []
        table = None
        if before is not None and earlier:
            known = before.tables.get(parent)
            table = known if (yield from same_rules(entries, earlier)) else None
        if table is None:
            rules = yield from found.rules(entries)
            table = RouteTable.__new__(RouteTable)
            yield from table.steps(rules, found.scheme)
        found.tables[parent] = table
    return found.tables[""]


def same_rules(entries: list[CompiledRoute], earlier: list[CompiledRoute]) -> Steps[bool]:
    """Return whether routes have the rules of earlier ones, in the same order."""
    if len(entries) != len(earlier):
        return False
    for hunk in hunks(earlier, entries, is_):
        for number in range(hunk.i1, hunk.i2):
            if entries[number].rules is not earlier[number].rules:
                return False
            if not number % STEP:
                yield
    return True
