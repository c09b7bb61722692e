"""What stays in mind of a text that was read: its items, and what the routes among them came to (see source_reader)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from headgate.config.context import Notes
from headgate.config.load import Reading
from headgate.config.pieces import Cut, best_cut, mark, split_item
from headgate.config.rest import Rest, rest_of
from headgate.config.routes import RouteSpec
from headgate.config.targeted import Unused
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.document.read import read_document
from headgate.errors import ConfigErrors
from headgate.ir.bind import Bind
from headgate.ir.gateway import Gateway
from headgate.ir.listener import Listener
from headgate.ir.route import Route


@dataclass(slots=True)
class KnownRoute:
    """The result of an item that is a route. `list_path`: of its list; `column`: where its first key
    stands; `named`: its name does not depend on its index. `built`: its route by the key of the listener, and behind it
    those that it leads to; `notes`: None
    where there are none but expressions, `backends`, the named ones that it refers to, and `services`.
    """

    list_path: str
    column: int
    index: int
    named: bool
    key: str
    built: tuple[tuple[str, Route], ...]
    expressions: tuple[tuple[str, str], ...]
    notes: Notes | None
    backends: tuple[str, ...] = ()
    services: tuple[str, ...] = ()

    def stays(self, index: int) -> bool:
        """Tell whether it is the same at another index of its list."""
        return index == self.index or (self.named and self.notes is None)

    @property
    def full_names(self) -> frozenset[str]:
        """Namespace and name of it and of the routes that it leads to; none where it stands at no listener."""
        return frozenset(f"{route.namespace}/{route.name}" for _, route in self.built)


class Layout(NamedTuple):
    """Where routes stand among the items: the first and the last of each list, by its path, and what is no route."""

    first: dict[str, int]
    last: dict[str, int]
    others: list[int]


@dataclass(slots=True)
class KnownText:
    """What stays of a reading. `routes`: for each item of the cut the route that it is, None where it is none.

    `outer`: the notes about everything that is no listed route; `unused`: what to say of policies that nobody uses;
    `counts`: how many parts have an expression; `keys`: of all routes; `rest`: of listeners by key, their routes that
    stand in no list; `rest_digest`: of all but the ports; `written`: what stands beside the routes.
    """

    text: Cut
    routes: list[KnownRoute | None]
    layout: Layout
    gateway: Gateway
    outer: Notes
    unused: Mapping[str, Unused]
    counts: Counter[tuple[str, str]]
    keys: set[str]
    rest: dict[str, tuple[Route, ...]]
    rest_digest: str
    written: Rest
    environ: dict[str, str]


def known_text(text: str, reading: Reading) -> KnownText | None:
    """Return what is known of a text that was read; None where its routes cannot be read one by one."""
    standalone, gateway = reading.standalone, reading.loaded.gateway
    found = None if reading.anchored or standalone.routes.ambiguous else best_cut(text)
    if found is None or not standalone.listed:
        return None
    routes = _placed(found, standalone.listed)
    context = standalone.context
    if routes is None or not _all_stand_alone(found, routes, context.environ):
        return None
    rest = _rest(gateway, routes)
    if rest is None:
        return None
    of_routes = (route.expressions for route in routes if route is not None)
    counts = Counter(chain(context.notes.expressions, chain.from_iterable(of_routes)))
    return KnownText(
        text=found,
        routes=routes,
        layout=layout_of(routes),
        gateway=gateway,
        outer=context.notes,
        unused=standalone.about_unused(),
        counts=counts,
        keys=standalone.routes.keys,
        rest=rest,
        rest_digest=standalone.rest_digest,
        written=rest_of(standalone),
        environ=dict(context.environ),
    )


def known_route(spec: RouteSpec) -> KnownRoute:
    """Return what a listed route came to."""
    listed = spec.listed
    assert listed is not None
    notes = listed.notes
    plain = not (notes.watched or notes.warnings or notes.used or notes.spiffe)
    return KnownRoute(
        list_path=listed.list_path,
        column=listed.record.node.column,
        index=listed.index,
        named=bool(listed.record.get("name")),
        key=spec.key,
        built=tuple((key, route) for key, routes in listed.built.items() for route in routes),
        expressions=tuple(listed.notes.expressions),
        notes=None if plain else replace(notes, expressions={}, backends=set(), services=set()),
        backends=tuple(notes.backends),
        services=tuple(notes.services),
    )


def _placed(text: Cut, specs: list[RouteSpec]) -> list[KnownRoute | None] | None:
    """Return for each item the route that it is; None unless all routes are items, one behind the other in a list."""
    numbers = {line: number for number, line in enumerate(lines_of(text))}
    routes: list[KnownRoute | None] = [None] * len(text.items)
    first: dict[str, int] = {}
    for spec in specs:
        assert spec.listed is not None
        node = spec.listed.record.node
        number = numbers.get(node.line)
        if number is None or routes[number] is not None or node.column <= text.column + len("- "):
            return None
        routes[number] = route = known_route(spec)
        if number - first.setdefault(route.list_path, number) != route.index:
            return None
    return routes


def lines_of(text: Cut) -> Iterator[int]:
    """Yield the line of each item, from 1."""
    line = text.head.count("\n") + 2
    for item in text.items:
        yield line
        line += item.count("\n") + 1


def _all_stand_alone(text: Cut, routes: list[KnownRoute | None], environ: Mapping[str, str]) -> bool:
    """Tell whether no list ends in an item that leaves something open. Another item stands in front of the next one."""
    for number in layout_of(routes).last.values():
        if column_alone(split_item(text.items[number], text.column).body, text.column, environ) is None:
            return False
    return True


def layout_of(routes: list[KnownRoute | None]) -> Layout:
    """Return where the routes stand."""
    first: dict[str, int] = {}
    last = {route.list_path: number for number, route in enumerate(routes) if route is not None}
    for number, route in enumerate(routes):
        if route is not None:
            first.setdefault(route.list_path, number)
    return Layout(first, last, [number for number, route in enumerate(routes) if route is None])


def column_alone(body: str, column: int, environ: Mapping[str, str]) -> int | None:
    """Return where the map begins that an item is by itself; None where it is none, or more than that."""
    try:
        root, anchored = read_document(f"{mark(column)[1:]}{body}\n", "", environ)
    except ConfigErrors:
        return None
    items = root.value
    if anchored or not isinstance(items, list) or len(items) != 1 or not isinstance(items[0].value, dict):
        return None
    return items[0].column


def _rest(gateway: Gateway, routes: list[KnownRoute | None]) -> dict[str, tuple[Route, ...]] | None:
    """Return the routes of each listener that stand behind those of lists; None where it is not so."""
    built = routes_by_listener(routes)
    rest: dict[str, tuple[Route, ...]] = {}
    for bind in gateway.binds:
        for listener in bind.listeners:
            listed = built.pop(listener.key, [])
            if listener.key in rest or any(map(_is_other, listed, listener.routes)):
                return None
            rest[listener.key] = listener.routes[len(listed) :]
    return None if built else rest


def _is_other(one: Route, other: Route) -> bool:
    return one is not other


def routes_by_listener(routes: list[KnownRoute | None]) -> dict[str, list[Route]]:
    """Return the routes of each listener, by its key, in their order."""
    found: dict[str, list[Route]] = {}
    for known in routes:
        if known is not None:
            for key, route in known.built:
                if key in found:
                    found[key].append(route)
                else:
                    found[key] = [route]
    return found


def with_routes(binds: tuple[Bind, ...], routes: Mapping[str, tuple[Route, ...]]) -> tuple[Bind, ...]:
    """Return ports whose listeners have these routes, by their keys."""

    def changed(listener: Listener) -> Listener:
        return replace(listener, routes=routes.get(listener.key, ()))

    return tuple(replace(bind, listeners=tuple(map(changed, bind.listeners))) for bind in binds)
