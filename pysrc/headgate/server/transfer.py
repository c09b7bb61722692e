"""The way of a configuration from the supervisor into a worker: what the worker does not have yet, in small parts.

A memory file holds a row of pickles that share one memo: the configuration without what there may be many of, which
routes its listeners have (by digest), and then, one by one, those of them that the worker does not know, and the
expressions that it does not know, compiled: workers do not load the parser. A worker reads them in steps beside its
traffic. Only supervisor and workers ever have the descriptor, so pickle is safe, and only here may secrets be pickled.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any, Final

from headgate.document.secret import private_channel
from headgate.ir.bind import Bind
from headgate.ir.gateway import Gateway
from headgate.ir.route import Route
from headgate_engine.expr.program import Program

DIGEST_BYTES: Final = 16
# Routes and names that are gone over between two yields.
STEP: Final = 256
# Fields of the root of which there may be many: their values travel one by one as well.
LONG: Final = ("backends", "policies", "services", "workloads")


class Incomplete(Exception):
    """A worker was told of a route that it neither had nor got."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A configuration without its routes and the values of LONG. `routes`: for each listener of each port the digests
    of its routes, one behind the other; `sent`: how many routes follow; `counts`: how many values of each of LONG;
    `programs`: how many compiled expressions come last; `dropped`: those of the worker that it needs no more; `fresh`:
    that is all of them, because the functions they call have changed.
    """

    gateway: Gateway
    routes: tuple[tuple[bytes, ...], ...]
    sent: int
    counts: tuple[int, ...]
    programs: int
    dropped: tuple[tuple[str, str], ...]
    fresh: bool


@dataclass(slots=True)
class KnownParts:
    """What a worker has of the configuration it runs: routes by digest, programs by text and phase."""

    routes: dict[str, Route] = field(default_factory=dict)
    programs: dict[tuple[str, str], Program] = field(default_factory=dict)


def route_digests(gateway: Gateway) -> frozenset[str]:
    """Return what tells the routes of a configuration from all others, their order among each other apart."""
    return frozenset(route.digest for bind in gateway.binds for one in bind.listeners for route in one.routes)


def store(gateway: Gateway, before: Gateway | None = None) -> int:
    """Return the descriptor of a memory file with a configuration; `before`: the one that workers have.

    Takes seconds for a large one, and belongs into a thread.
    """
    descriptor = os.memfd_create("headgate-config", os.MFD_CLOEXEC)
    try:
        with private_channel(), os.fdopen(os.dup(descriptor), "wb") as file:
            _write(gateway, before, file)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _write(gateway: Gateway, before: Gateway | None, file: IO[bytes]) -> None:
    from headgate.expr.custom import parsed_functions  # see headgate.expr.faults
    from headgate.expr.shapes import EXPRESSIONS

    held = frozenset() if before is None else route_digests(before)
    missing = {
        route.digest: route
        for bind in gateway.binds
        for listener in bind.listeners
        for route in listener.routes
        if route.digest not in held
    }
    functions = gateway.process.custom_functions
    same = before is not None and before.process.custom_functions == functions
    had = before.expressions if before is not None and same else frozenset()
    expressions = gateway.expressions - had
    outline = Outline(
        gateway=_without_routes(gateway),
        routes=tuple(
            tuple(bytes.fromhex("".join([route.digest for route in one.routes])) for one in bind.listeners)
            for bind in gateway.binds
        ),
        sent=len(missing),
        counts=tuple(len(getattr(gateway, name)) for name in LONG),
        programs=len(expressions),
        dropped=tuple(had - gateway.expressions),
        fresh=not same,
    )
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.dump(outline)
    for route in missing.values():
        pickler.dump(route)
    for name in LONG:
        for value in getattr(gateway, name):
            pickler.dump(value)
    for text, phase in expressions:
        pickler.dump((phase, EXPRESSIONS.program(text, phase, parsed_functions(functions))))


def _without_routes(gateway: Gateway) -> Gateway:
    binds = tuple(
        replace(bind, listeners=tuple(replace(listener, routes=()) for listener in bind.listeners))
        for bind in gateway.binds
    )
    empty: dict[str, Any] = dict.fromkeys(LONG, ())
    return replace(gateway, binds=binds, expressions=frozenset(), **empty)


def load(descriptor: int, known: KnownParts) -> Generator[None, None, tuple[Gateway, KnownParts]]:
    """Read the configuration behind a descriptor in steps and close that; `known`: what is there of the one before.

    Return it with what to hold of it. A route that is known is that object. Raises Incomplete.
    """
    got: dict[str, Route] = {}
    long: dict[str, Any] = {}
    programs: dict[tuple[str, str], Program] = {}
    try:
        # Opened anew: the descriptor shares its offset with those of the other workers.
        with open(f"/proc/self/fd/{descriptor}", "rb") as file:
            reader = pickle.Unpickler(file)  # noqa: S301 - written by our supervisor
            outline: Outline = reader.load()
            yield
            for _ in range(outline.sent):
                route: Route = reader.load()
                got[route.digest] = route
                yield
            for name, count in zip(LONG, outline.counts, strict=True):
                values = []
                for _ in range(count):
                    values.append(reader.load())
                    yield
                long[name] = tuple(values)
            for _ in range(outline.programs):
                phase, program = reader.load()
                programs[program.text, phase] = program
                yield
    finally:
        os.close(descriptor)
    if not outline.fresh:
        programs = known.programs | programs
        for number, key in enumerate(outline.dropped):
            programs.pop(key, None)
            if not number % STEP:
                yield
    routes: dict[str, Route] = {}
    binds: list[Bind] = []
    for bind, texts in zip(outline.gateway.binds, outline.routes, strict=True):
        listeners = []
        for listener, text in zip(bind.listeners, texts, strict=True):
            found = yield from _routes(text.hex(), known.routes, got)
            routes.update(found)
            yield
            listeners.append(replace(listener, routes=tuple(found.values())))
        binds.append(replace(bind, listeners=tuple(listeners)))
    return replace(outline.gateway, binds=tuple(binds), **long), KnownParts(routes, programs)


def _routes(
    text: str, known: Mapping[str, Route], got: Mapping[str, Route]
) -> Generator[None, None, dict[str, Route]]:
    """Return the routes of one listener by their digests."""
    found: dict[str, Route] = {}
    width = 2 * DIGEST_BYTES
    for number, at in enumerate(range(0, len(text), width)):
        digest = text[at : at + width]
        route = known.get(digest) or got.get(digest)
        if route is None:
            raise Incomplete(digest)
        found[digest] = route
        if not number % STEP:
            yield
    return found
