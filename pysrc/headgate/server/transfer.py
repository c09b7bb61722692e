"""Transfers a configuration from the supervisor to a worker: only what the worker does not have yet, in small parts.

A memory file holds a row of pickles: the configuration without what there may be many of, where its listeners have
other routes than in the configuration before, and then, one by one, the routes and the expressions that the worker does
not know. BATCH of them share one memo: to free that of a whole row takes a worker several milliseconds. Expressions are
compiled: workers do not load the parser. A worker reads them in steps beside its traffic. Only supervisor and workers
ever have the descriptor, so pickle is safe, and only here may secrets be pickled.
"""

from __future__ import annotations

import asyncio
import os
import pickle
from collections import ChainMap
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import field
from itertools import chain
from operator import is_
from typing import IO, Any, Final

from headgate.document.hunks import Hunk, hunks
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.document.secret import private_channel
from headgate.ir.bind import Bind
from headgate.ir.gateway import Gateway
from headgate.ir.route import Route
from headgate_engine.expr.program import Program

DIGEST_DIGITS: Final = 32
# Routes and names that are gone over between two yields.
STEP: Final = 256
# Pickles that share one memo, and so one copy of what is equal in them.
BATCH: Final = 256
# Fields of the root of which there may be many: their values travel one by one as well, unless they stay.
LONG: Final = ("backends", "policies")
# Fields of the root that stay in the supervisor: what routes take from them is in the routes.
UNSENT: Final = ("services", "workloads")
UNCHANGED: Final = -1

Programs = Mapping[tuple[str, str], Program]
ListenerKey = tuple[str, str]


class Incomplete(Exception):
    """A worker received a reference to a route or expression that it neither had nor received."""


@dataclass(frozen=True, slots=True)
class Splice:
    """Routes of a listener that are others than before: those from `start` to `stop` (exclusive) became those with the
    digests that `digests` has, one behind the other.
    """

    start: int
    stop: int
    digests: bytes


@dataclass(frozen=True, slots=True)
class Outline:
    """A configuration without its routes and the values of LONG and UNSENT. `splices`: for each listener of each port
    what is other than before, in order; `sent`: how many routes follow; `counts`: how many values of each of LONG,
    or UNCHANGED; `programs`: how many compiled expressions come last; `dropped`: those of the worker that it needs no
    more; `fresh`: that is all of them, because the functions they call have changed.
    """

    gateway: Gateway
    splices: tuple[tuple[tuple[Splice, ...], ...], ...]
    sent: int
    counts: tuple[int, ...]
    programs: int
    dropped: tuple[tuple[str, str], ...]
    fresh: bool


@dataclass(slots=True)
class KnownParts:
    """What a worker already has: its running configuration, and compiled expressions by text and phase."""

    gateway: Gateway | None = None
    programs: dict[tuple[str, str], Program] = field(default_factory=dict)


@dataclass(slots=True)
class Received:
    """A received configuration with its compiled expressions; see Outline."""

    gateway: Gateway
    known: KnownParts
    new: dict[tuple[str, str], Program]
    dropped: tuple[tuple[str, str], ...]
    fresh: bool

    @property
    def programs(self) -> Programs:
        """All programs of the configuration."""
        return self.new if self.fresh or not self.known.programs else ChainMap(self.new, self.known.programs)

    def take(self) -> list[Any]:
        """Make this the known state when the configuration is in force. Return the previous state, which may be slow to
        free."""
        known = self.known
        known.gateway = self.gateway
        if self.fresh:
            before, known.programs = known.programs, self.new
            return [before]
        gone: list[Any] = [known.programs.pop(key, None) for key in self.dropped]
        known.programs.update(self.new)
        return gone


def store(gateway: Gateway, before: Gateway | None = None) -> int:
    """Return the descriptor of a memory file with a configuration; `before`: the one that workers have.

    Takes seconds for a large new configuration, so run it in a thread.
    """
    descriptor = os.memfd_create("headgate-config", os.MFD_CLOEXEC)
    try:
        with private_channel(), os.fdopen(os.dup(descriptor), "wb") as file:
            _write(gateway, before, file)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def store_one(value: object) -> int:
    """Return the descriptor of a memory file with one value, which may have secrets."""
    descriptor = os.memfd_create("headgate-value", os.MFD_CLOEXEC)
    try:
        with private_channel(), os.fdopen(os.dup(descriptor), "wb") as file:
            pickle.dump(value, file, pickle.HIGHEST_PROTOCOL)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def load_one(descriptor: int) -> Any:
    """Return the value behind a descriptor and close that."""
    try:
        # Opened anew: the descriptor shares its offset with those of the other workers.
        with open(f"/proc/self/fd/{descriptor}", "rb") as file:
            return pickle.load(file)  # noqa: S301 - written by our supervisor
    finally:
        os.close(descriptor)


async def store_for(gateway: Gateway, inherited: Iterable[str], before: Gateway | None = None) -> int:
    """Return the descriptor of a stored configuration for workers that run `before`, or were forked with the
    configurations of these digests. An empty file stands for the one that a worker was forked with.
    """
    if all(digest == gateway.digest for digest in inherited):
        return os.memfd_create("headgate-config", os.MFD_CLOEXEC)
    return await asyncio.to_thread(store, gateway, before)


def load_inherited(gateway: Gateway, known: KnownParts) -> Generator[None, None, Received]:
    """Return, in steps, the configuration that this process was forked with, as load() does. Its expressions have been
    checked before, by the process that it was forked from.
    """
    programs: dict[tuple[str, str], Program] = {}
    for phase, program in _compiled(gateway.expressions, gateway.process.custom_functions):
        programs[program.text, phase] = program
        yield
    return Received(gateway, known, programs, (), fresh=True)


def _compiled(expressions: Iterable[tuple[str, str]], functions: str) -> Iterator[tuple[str, Program]]:
    """Compile expressions; each with its phase. Where there are none, the compiler is not loaded."""
    for text, phase in expressions:
        from headgate.expr.custom import parsed_functions  # see headgate.expr.faults
        from headgate.expr.shapes import EXPRESSIONS

        yield phase, EXPRESSIONS.program(text, phase, parsed_functions(functions))


def _write(gateway: Gateway, before: Gateway | None, file: IO[bytes]) -> None:
    splices, missing = _splices(gateway, before)
    functions = gateway.process.custom_functions
    same = before is not None and before.process.custom_functions == functions
    had = before.expressions if before is not None and same else frozenset()
    stay = gateway.expressions is had
    expressions = frozenset() if stay else gateway.expressions - had
    long = [name for name in LONG if before is None or getattr(gateway, name) is not getattr(before, name)]
    outline = Outline(
        gateway=_without_routes(gateway),
        splices=splices,
        sent=len(missing),
        counts=tuple(len(getattr(gateway, name)) if name in long else UNCHANGED for name in LONG),
        programs=len(expressions),
        dropped=() if stay else tuple(had - gateway.expressions),
        fresh=not same,
    )
    values = (value for name in long for value in getattr(gateway, name))
    row = chain((outline,), missing.values(), values, _compiled(expressions, functions))
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    for number, one in enumerate(row, start=1):
        pickler.dump(one)
        if not number % BATCH:
            pickler.clear_memo()


def _rows(file: IO[bytes]) -> Iterator[Any]:
    """Yield what _write() has written."""
    while True:
        reader = pickle.Unpickler(file)  # noqa: S301 - written by our supervisor
        for _ in range(BATCH):
            yield reader.load()


def _routes_by_listener(gateway: Gateway | None) -> dict[ListenerKey, tuple[Route, ...]]:
    binds = () if gateway is None else gateway.binds
    return {(bind.key, listener.key): listener.routes for bind in binds for listener in bind.listeners}


def _splices(
    gateway: Gateway, before: Gateway | None
) -> tuple[tuple[tuple[tuple[Splice, ...], ...], ...], dict[str, Route]]:
    """Return where routes are others than before, and those of them that a worker does not have there."""
    old = _routes_by_listener(before)
    changed: dict[ListenerKey, list[Hunk]] = {}
    held: set[str] = set()
    for key, routes in _routes_by_listener(gateway).items():
        earlier = old.get(key, ())
        changed[key] = hunks(earlier, routes, is_)
        held.update(route.digest for hunk in changed[key] for route in earlier[hunk.i1 : hunk.i2])
    missing: dict[str, Route] = {}
    found = []
    for bind in gateway.binds:
        of_bind = []
        for listener in bind.listeners:
            splices = []
            for hunk in changed[bind.key, listener.key]:
                new = listener.routes[hunk.j1 : hunk.j2]
                missing.update({route.digest: route for route in new if route.digest not in held})
                splices.append(Splice(hunk.i1, hunk.i2, bytes.fromhex("".join([route.digest for route in new]))))
            of_bind.append(tuple(splices))
        found.append(tuple(of_bind))
    return tuple(found), missing


def _without_routes(gateway: Gateway) -> Gateway:
    binds = tuple(
        replace(bind, listeners=tuple(replace(listener, routes=()) for listener in bind.listeners))
        for bind in gateway.binds
    )
    empty: dict[str, Any] = dict.fromkeys((*LONG, *UNSENT), ())
    return replace(gateway, binds=binds, expressions=frozenset(), **empty)


def load(descriptor: int, known: KnownParts) -> Generator[None, None, Received]:
    """Read the configuration behind a descriptor in steps and close that; `known`: what is there of the one before.

    A route that is known is that object. Raises Incomplete.
    """
    got: dict[str, Route] = {}
    long: dict[str, Any] = {}
    programs: dict[tuple[str, str], Program] = {}
    try:
        # Opened anew: the descriptor shares its offset with those of the other workers.
        with open(f"/proc/self/fd/{descriptor}", "rb") as file:
            rows = _rows(file)
            outline: Outline = next(rows)
            yield
            for _ in range(outline.sent):
                route: Route = next(rows)
                got[route.digest] = route
                yield
            for name, count in zip(LONG, outline.counts, strict=True):
                if count == UNCHANGED:
                    if known.gateway is None:
                        raise Incomplete(name)
                    long[name] = getattr(known.gateway, name)
                    continue
                values = []
                for _ in range(count):
                    values.append(next(rows))
                    yield
                long[name] = tuple(values)
            for _ in range(outline.programs):
                phase, program = next(rows)
                programs[program.text, phase] = program
                yield
    finally:
        os.close(descriptor)
    binds = yield from _with_routes(outline, known, got)
    gateway = replace(outline.gateway, binds=binds, **long)
    return Received(gateway, known, programs, outline.dropped, outline.fresh)


def _with_routes(
    outline: Outline, known: KnownParts, got: Mapping[str, Route]
) -> Generator[None, None, tuple[Bind, ...]]:
    """Return the ports with their routes."""
    old = _routes_by_listener(known.gateway)
    pairs = list(zip(outline.gateway.binds, outline.splices, strict=True))
    held = dict(got)
    for bind, of_bind in pairs:
        for listener, splices in zip(bind.listeners, of_bind, strict=True):
            for splice in splices:
                routes = old.get((bind.key, listener.key), ())[splice.start : splice.stop]
                for number in range(0, len(routes), STEP):
                    held.update((route.digest, route) for route in routes[number : number + STEP])
                    yield
    binds = []
    for bind, of_bind in pairs:
        listeners = []
        for listener, splices in zip(bind.listeners, of_bind, strict=True):
            made = list(old.get((bind.key, listener.key), ()))
            for splice in reversed(splices):
                made[splice.start : splice.stop] = yield from _by_digest(splice.digests.hex(), held)
            listeners.append(replace(listener, routes=tuple(made)))
            yield
        binds.append(replace(bind, listeners=tuple(listeners)))
    return tuple(binds)


def _by_digest(text: str, held: Mapping[str, Route]) -> Generator[None, None, list[Route]]:
    """Return the routes with these digests."""
    found: list[Route] = []
    for number, at in enumerate(range(0, len(text), DIGEST_DIGITS)):
        route = held.get(text[at : at + DIGEST_DIGITS])
        if route is None:
            raise Incomplete(text[at : at + DIGEST_DIGITS])
        found.append(route)
        if not number % STEP:
            yield
    return found
