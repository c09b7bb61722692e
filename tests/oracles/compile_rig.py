"""A worker without a process, for tests of compiled configurations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from headgate.backend.mcp.relay import Relay
from headgate.backend.mcp.session import SessionIds
from headgate.config.load import TextSource, load
from headgate.ir.gateway import Gateway
from headgate.ir.route import Route
from headgate.net.tasks import spawner
from headgate.pipeline.compile import compile_gateway
from headgate.pipeline.running import CompiledListener, RunningConfiguration
from headgate.pipeline.slices import at_once
from headgate_drivers.route import matched
from headgate_engine.link.client import HttpClient
from headgate_engine.link.worker import Worker
from headgate_engine.plan.plans import RoutePlan
from headgate_engine.shared.segment import Segment

PATIENCE = 20.0
PORT = "gateways: {default: {port: 3000}}\n"


class Rig:
    """One worker that compiles configurations and swaps them in; `known` are its routes by digest, as in a process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.segment = Segment.create()
        self.worker = Worker(loop, self.segment, 0, -1, spawner(loop))
        self.running: RunningConfiguration | None = None
        self.known: dict[str, Route] = {}
        self.generation = 0
        self.within: Callable[[Callable[[], object]], None]
        self.loop = loop

    def rest(self, condition: Callable[[], object] = lambda: True) -> None:
        """Run the loop until its background tasks have come to a condition, or PATIENCE is over."""

        async def wait() -> None:
            end = self.loop.time() + PATIENCE
            for _ in range(5):
                await asyncio.sleep(0)
            while not condition() and self.loop.time() < end:  # noqa: ASYNC110 - it has no event to wait for
                await asyncio.sleep(0.01)

        self.loop.run_until_complete(wait())

    def run(self, text: str, gateways: str = PORT) -> RunningConfiguration:
        return self.swap(self.compile(text, gateways))

    def swap(self, made: RunningConfiguration) -> RunningConfiguration:
        """Bring a compiled configuration in, and let go of the one before it."""
        before, self.running = self.running, made
        made.activate()
        if before is not None:
            at_once(before.release(made))
        return made

    def compile(self, text: str, gateways: str = PORT) -> RunningConfiguration:
        return self.compiled(self.same_routes(load(TextSource(gateways + text)).gateway))

    def compiled(self, gateway: Gateway) -> RunningConfiguration:
        """Return what a configuration that was read is compiled to."""
        self.generation += 1
        relay = Relay(0, SessionIds(bytes(32)), nobody)
        return compile_gateway(
            gateway, self.running, worker=self.worker, generation=self.generation, relay=relay
        )

    def same_routes(self, gateway: Gateway) -> Gateway:
        found: dict[str, Route] = {}
        for listener in (one for bind in gateway.binds for one in bind.listeners):
            for route in listener.routes:
                found[route.digest] = self.known.get(route.digest, route)
        self.known = found
        binds = tuple(
            replace(
                bind,
                listeners=tuple(
                    replace(one, routes=tuple(found[route.digest] for route in one.routes)) for one in bind.listeners
                ),
            )
            for bind in gateway.binds
        )
        return replace(gateway, binds=binds)

    @property
    def listener(self) -> CompiledListener:
        assert self.running is not None
        return next(iter(self.running.listeners.values()))

    def plan(self, path: str) -> RoutePlan | None:
        assert self.listener.table is not None
        rule = matched(self.listener.table, "a", "GET", path)
        return None if rule is None else rule.target


def nobody(index: int, _patient: bool) -> HttpClient:
    raise LookupError(f"there is no worker {index}")


@pytest.fixture
def rig() -> Iterator[Rig]:
    with open_rig() as made:
        yield made


@contextmanager
def open_rig() -> Iterator[Rig]:
    """A rig with a loop of its own."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    made = Rig(loop)

    async def close() -> None:
        if made.running is not None:
            await made.running.aclose()
        await made.worker.aclose()

    async def within(call: Any) -> None:
        call()

    made.within = lambda call: loop.run_until_complete(within(call))
    yield made
    loop.run_until_complete(close())
    loop.close()
    made.segment.close()
