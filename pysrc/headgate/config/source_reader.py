"""Reads a source again and again. What a reload costs is what has changed: a route of the same text is not read again.

The first time, and whenever in doubt, the text is read as a whole (`load.interpret`). What stays in mind of that is the
text, cut at the items of a long list (`pieces`), and what the routes among them came to (`known_routes`). When only
routes differ the next time, a short text is read in the place of the whole one: everything that is no route, and the
routes that are new. What these come to takes its place among the known ones. The result is that of reading everything:
routes know nothing of each other but their names, which are compared, and all else that a route depends on (the files
that are named, the environment, the rest of the text) must be as it was. Where named backends, services or targeted
policies differ, the routes that depend on them are read again (`rest`). A text with a fault is read as a whole, so that
all faults are told with their places.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from itertools import chain, repeat
from operator import is_
from typing import Any, Final

from headgate.config.context import Context, Notes
from headgate.config.known_routes import (
    KnownRoute,
    KnownText,
    column_alone,
    known_route,
    known_text,
    layout_of,
    routes_by_listener,
    with_routes,
)
from headgate.config.load import Loaded, Reading, Source, collector_paused, interpret, opened
from headgate.config.pieces import Cut, cut, mark, split_item
from headgate.config.rest import BACKENDS, POLICIES, SERVICES, WORKLOADS, dependents, rest_of
from headgate.config.routes import RouteSpec
from headgate.config.standalone import all_notes, whole_digest
from headgate.document.hunks import Hunk, hunks
from headgate.document.lazy_dataclass import replace
from headgate.document.nodes import Report
from headgate.document.read import MAX_NODES
from headgate.document.regular_file import read_regular
from headgate.errors import ConfigErrors
from headgate.ir.bind import Bind
from headgate.ir.gateway import Gateway
from headgate.ir.route import Route

# Texts that could have more values than a document may are read as a whole.
MAX_TEXT: Final = 2 * MAX_NODES
# When more than this share of the routes is new, the whole is read: both take as long.
MOST_NEW: Final = 0.25
# So many changed routes are looked for in the lists of their listeners; for more, these are made anew.
FEW: Final = 8
# Fields of a configuration that are no routes and may be long.
LONG: Final = (BACKENDS, POLICIES, SERVICES, WORKLOADS)
Contents = Mapping[str, bytes | None]


class Doubt(Exception):
    """The whole text has to be read."""


class SourceReader:
    """Reads one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        # How many texts were read as a whole.
        self.whole = 0
        self._last: Loaded | None = None
        self._text = ""
        self._contents: Contents | None = None
        self._known: KnownText | None = None

    def load(self, environ: Mapping[str, str] | None = None) -> Loaded:
        """Read as load.load() does; return the same object again where nothing has changed since.

        Raises UnreadableSource and LoadErrors.
        """
        text, context, watched = self._opened(environ)
        with collector_paused():
            found = self._changed(text, context, watched) if watched else None
            if found is None:
                found = self._whole(text, context, watched)
        self._last = found
        return found

    def _opened(self, environ: Mapping[str, str] | None) -> tuple[str, Context, tuple[str, ...]]:
        """Return text, context and watched files; UnreadableSource."""
        return opened(self.source, environ)

    def _changed(self, text: str, context: Context, watched: tuple[str, ...]) -> Loaded | None:
        """Return what the text comes to, by what is known; None where the whole has to be read."""
        last, known = self._last, self._known
        if last is None or self._contents is None or not _are_same(self._contents):
            return None
        if known is None:
            return last if text == self._text else None
        if dict(context.environ) != known.environ or len(text) > MAX_TEXT:
            return None
        try:
            change = _Change(known, cut(text, known.text.column), context)
            if not change.hunks and not change.rest_changed:
                return last
            found, files = change.read(watched)
        except (Doubt, ConfigErrors):
            return None
        named = found.watched_files[len(watched) :]
        known_files = {path: digest for path, digest in self._contents.items() if path in named}
        if any(known_files.setdefault(path, _digest(content)) != _digest(content) for path, content in files.items()):
            return None
        if len(known_files) < len(named):
            return None
        self._contents, self._known = known_files, change.known
        return found

    def _whole(self, text: str, context: Context, watched: tuple[str, ...]) -> Loaded:
        """Read the whole text. What is known of the one before stays in mind when there is a fault."""
        self.whole += 1
        reading = interpret(text, context, watched)
        loaded = reading.loaded
        self._known, self._text, self._contents = None, "", None
        named = loaded.watched_files[len(watched) :]
        # What is stored changes as well, so that the whole is read each time.
        if watched and loaded.resources is None and all(path in context.contents for path in named):
            self._contents = {path: _digest(context.contents[path]) for path in named}
            self._known = known_text(text, reading)
            self._text = text if self._known is None else ""
        return loaded


def _digest(content: bytes | None) -> bytes | None:
    return None if content is None else hashlib.sha256(content).digest()


def _are_same(contents: Contents) -> bool:
    """Tell whether the files that were read have what they had."""
    for path, digest in contents.items():
        try:
            now = _digest(read_regular(path))
        except FileNotFoundError:
            now = None
        except OSError:
            return False
        if now != digest:
            return False
    return True


class _Change:
    """What differs between a text and the one that is known."""

    def __init__(self, known: KnownText, text: Cut | None, context: Context) -> None:
        if text is None:
            raise Doubt
        self.known = known
        self.text = text
        self.hunks = hunks(known.text.items, text.items)
        self._context = context
        # For each item the route that it is, None where it is none. Those of `_new` stand for what is yet to be read.
        self._routes = known.routes.copy()
        self._new: dict[int, KnownRoute] = {}
        self._gone: list[KnownRoute] = []
        # Whether what is no hunk stands where it stood, and whether known routes stand elsewhere within hunks.
        self._in_place = all(hunk.i2 - hunk.i1 == hunk.j2 - hunk.j1 for hunk in self.hunks)
        self._moved = False
        self._layout = known.layout
        # Whether something differs that is no route.
        self.rest_changed = text.head != known.text.head

    def read(self, watched: tuple[str, ...]) -> tuple[Loaded, Contents]:
        """Return what the text comes to, and which files were read for it; then `known` is what is known of it.

        Raises Doubt and LoadErrors.
        """
        for hunk in reversed(self.hunks):
            self._place(hunk)
        if not self._in_place:
            self._layout = layout_of(self._routes)
        self._number()
        reading, contents = self._interpreted(watched)
        if self.rest_changed and self._add_dependents(reading):
            reading, contents = self._interpreted(watched)
        gateway, warnings, files = self._whole(reading)
        named = (*watched, *(path for path in files if path not in watched))
        return Loaded(gateway, named, tuple(warnings)), contents

    # -- where the routes stand -----------------------------------------------------------------------------------
    def _place(self, hunk: Hunk) -> None:
        """Put the items of a hunk in the place of those before."""
        old = self._routes[hunk.i1 : hunk.i2]
        path = self._list_path(hunk)
        if path is None:
            self._routes[hunk.i1 : hunk.i2] = [None] * (hunk.j2 - hunk.j1)
            self.rest_changed = True
            return
        column = self.text.column
        tail = split_item(self.known.text.items[hunk.i2 - 1], column).tail if old else ""
        bodies = self._bodies(hunk, tail)
        texts = self.known.text.items[hunk.i1 : hunk.i2]
        texts[-1:] = [text.removesuffix(tail) for text in texts[-1:]]
        by_text = {text: route for text, route in zip(texts, old, strict=True) if route is not None}
        if len(by_text) < len(old):
            raise Doubt  # equal texts, each of which may stand for the other
        found: list[KnownRoute | None] = []
        for body in bodies:
            route = by_text.pop(body, None)
            if route is None:
                at = column_alone(body, column, self._context.environ)
                if at is None:
                    raise Doubt
                route = KnownRoute(path, at, -1, False, "", (), (), None)
            else:
                self._moved = True
            found.append(route)
        self._gone += by_text.values()
        self._routes[hunk.i1 : hunk.i2] = found

    def _list_path(self, hunk: Hunk) -> str | None:
        """Return the list of the items of a hunk, None if they are not routes."""
        routes = self.known.routes
        paths = {None if route is None else route.list_path for route in routes[hunk.i1 : hunk.i2]}
        if hunk.i1 == hunk.i2:
            # Behind the item before, unless its list ends there.
            ended = not hunk.i1 or split_item(self.known.text.items[hunk.i1 - 1], self.text.column).tail
            number = hunk.i1 if ended else hunk.i1 - 1
            chosen = routes[number] if number < len(routes) else None
            paths = {None if chosen is None else chosen.list_path}
        [path, *others] = paths
        if others:
            raise Doubt
        return path

    def _bodies(self, hunk: Hunk, tail: str) -> list[str]:
        """Return the new items of a hunk; only behind the last one may something stand, if something stood there."""
        items = self.text.items[hunk.j1 : hunk.j2]
        split = [split_item(item, self.text.column) for item in items]
        tails = [one.tail for one in split]
        now = tails[-1] if tails else ""
        if any(tails[:-1]) or bool(now) != bool(tail):
            raise Doubt
        self.rest_changed = self.rest_changed or now != tail
        return [one.body for one in split]

    def _number(self) -> None:
        """Find the routes that have to be read, with the index that each has in its list."""
        first = self._layout.first
        positions = chain.from_iterable(range(hunk.j1, hunk.j2) for hunk in self.hunks)
        for position in positions if self._in_place else range(len(self._routes)):
            route = self._routes[position]
            if route is None:
                continue
            index = position - first[route.list_path]
            if route.index < 0:
                self._new[position] = route
            elif not route.stays(index):
                self._gone.append(route)
                self._new[position] = route

    # -- reading --------------------------------------------------------------------------------------------------
    def _interpreted(self, watched: tuple[str, ...]) -> tuple[Reading, Contents]:
        """Read everything that is no route, and the new routes, whose results take their places."""
        if len(self._new) > MOST_NEW * len(self._routes):
            raise Doubt
        text, lines, indexes = self._short_text()
        outer = self._context
        context = Context(
            Report(outer.report.file), outer.environ, outer.folder, indexes=indexes, bind_host=outer.bind_host
        )
        reading = interpret(text, context, watched, partial=True)
        standalone = reading.standalone
        if reading.anchored or standalone.routes.ambiguous or len(standalone.listed) != len(indexes):
            raise Doubt
        for spec in standalone.listed:
            self._take(spec, lines)
        return reading, context.contents

    def _add_dependents(self, reading: Reading) -> bool:
        """Add the routes that depend on what has changed to those that are read; tell whether there are any."""
        written = rest_of(reading.standalone)
        depends = dependents(self.known.written, written, reading.standalone.context.notes)
        if depends is None:
            raise Doubt
        found = [
            (position, route)
            for position, route in enumerate(self._routes)
            if route is not None and position not in self._new
            if depends(route)
        ]
        self._gone += [route for _, route in found]
        self._new |= dict(found)
        return bool(found)

    def _take(self, spec: RouteSpec, lines: Mapping[int, int]) -> None:
        assert spec.listed is not None
        position = lines.get(spec.listed.record.node.line)
        wanted = None if position is None else self._routes[position]
        if position is None or wanted is None or wanted.list_path != spec.listed.list_path:
            raise Doubt
        if position in self._new:
            self._new[position] = self._routes[position] = known_route(spec)

    def _short_text(self) -> tuple[str, dict[int, int], dict[tuple[int, int], int]]:
        """Return the text without the routes that are known, the positions of its routes by line, and their indexes by
        line and column. A list of which nothing is new keeps its first route: an empty one would be another text.
        """
        first, last, others = self._layout
        touched = {self._new[position].list_path for position in self._new}
        routes = {*self._new, *(position for path, position in first.items() if path not in touched)}
        parts, line = [self.text.head], self.text.head.count("\n") + 2
        lines: dict[int, int] = {}
        indexes: dict[tuple[int, int], int] = {}
        for position in sorted({*last.values(), *others, *routes}):
            item, known = self.text.items[position], self._routes[position]
            if known is not None and position not in routes:
                tail = split_item(item, self.text.column).tail
                parts.append(tail)
                line += tail.count("\n")
                continue
            if known is not None:
                lines[line] = position
                indexes[line, known.column] = position - first[known.list_path]
            parts += [mark(self.text.column), item]
            line += item.count("\n") + 1
        return "".join([*parts, "\n"]), lines, indexes

    # -- the result -----------------------------------------------------------------------------------------------
    def _whole(self, reading: Reading) -> tuple[Gateway, list[str], list[str]]:
        """Return the configuration with its warnings and files, after making sure that nothing else has changed."""
        known, standalone = self.known, reading.standalone
        outer, rest_digest = standalone.context.notes, standalone.rest_digest
        unused = standalone.about_unused()
        if not self.rest_changed and (outer, unused, rest_digest) != (known.outer, known.unused, known.rest_digest):
            raise Doubt
        keys = self._keys()
        binds, rest = self._binds(reading)
        expressions, counts = self._expressions(outer)
        gateway = replace(
            known.gateway, **self._long(reading), binds=binds, expressions=expressions,
            digest=whole_digest(binds, rest_digest),
        )  # fmt: skip
        notes = (route.notes for route in self._routes if route is not None and route.notes is not None)
        warnings, files, refused, spiffe = all_notes(outer, notes, unused)
        if refused:
            raise Doubt
        gateway = replace(gateway, spiffe=spiffe)
        self.known = replace(
            known, text=self.text, routes=self._routes, layout=self._layout, gateway=gateway, counts=counts, keys=keys,
            outer=outer, unused=unused, rest=rest, rest_digest=rest_digest,
            written=rest_of(standalone) if self.rest_changed else known.written,
        )  # fmt: skip
        return gateway, warnings, files

    def _long(self, reading: Reading) -> dict[str, Any]:
        """Return what there may be many of beside routes, what was there before where it is equal."""
        now, before = reading.loaded.gateway, self.known.gateway
        return {
            name: getattr(now, name) for name in LONG if getattr(now, name) != getattr(before, name)
        }

    def _keys(self) -> set[str]:
        """Return the keys of all routes, after making sure that each has its own."""
        gone = {route.key for route in self._gone}
        new = {route.key for route in self._new.values()}
        if len(new) < len(self._new) or not self.known.keys.isdisjoint(new - gone):
            raise Doubt
        return self.known.keys if new == gone else (self.known.keys - gone) | new

    def _expressions(self, outer: Notes) -> tuple[frozenset[tuple[str, str]], Counter[tuple[str, str]]]:
        """Return the expressions of the configuration, and how many parts have each."""
        known = self.known
        gone = Counter(chain(known.outer.expressions, *(route.expressions for route in self._gone)))
        new = Counter(chain(outer.expressions, *(route.expressions for route in self._new.values())))
        if gone == new:
            return known.gateway.expressions, known.counts
        counts = known.counts.copy()
        counts.update(new)
        counts.subtract(gone)
        for expression in gone:
            if counts[expression] <= 0:
                del counts[expression]
        return frozenset(counts), counts

    def _binds(self, reading: Reading) -> tuple[tuple[Bind, ...], dict[str, tuple[Route, ...]]]:
        """Return the ports with all routes, after making sure that nothing but routes has changed in them; and for each
        listener the routes that stand in no list.
        """
        known, short = self.known, reading.loaded.gateway.binds
        if with_routes(short, {}) != with_routes(known.gateway.binds, {}):
            raise Doubt
        listed = routes_by_listener([known_route(spec) for spec in reading.standalone.listed])
        rest = dict(known.rest)
        for bind in short:
            for listener in bind.listeners:
                now = listener.routes[len(listed.get(listener.key, ())) :]
                if now != rest[listener.key]:
                    rest[listener.key] = now
        if rest != known.rest and not self.rest_changed:
            raise Doubt
        routes = self._replaced() if rest == known.rest else None
        if routes is None:
            found = routes_by_listener(self._routes)
            routes = {key: (*found.get(key, ()), *others) for key, others in rest.items()}
        return with_routes(known.gateway.binds, routes), rest

    def _replaced(self) -> dict[str, tuple[Route, ...]] | None:
        """Return the routes of all listeners where few were replaced by others in their places; None where it is not
        so.
        """
        known = self.known
        if self._moved or not self._in_place or len(self._new) > FEW:
            return None
        listeners = {one.key: one.routes for bind in known.gateway.binds for one in bind.listeners}
        found = {key: list(routes) for key, routes in listeners.items()}
        for position, route in self._new.items():
            before = known.routes[position]
            if before is None or [key for key, _ in before.built] != [key for key, _ in route.built]:
                return None
            for (key, old), (_, new) in zip(before.built, route.built, strict=True):
                found[key][list(map(is_, repeat(old), listeners[key])).index(True)] = new
        return {key: tuple(routes) for key, routes in found.items()}
