"""Connection pools: reuse, limits, failures of every kind, and churn."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from rig import GET, Rig, Truncated, Upstream, on_rig

from headgate_engine.http1.codec import Http1Codec
from headgate_engine.http2.session import Http2Session
from headgate_engine.link.client import CallError, HttpClient
from headgate_engine.link.endpoints import EndpointSet, EndpointState, HealthPlan
from headgate_engine.link.http2_upstream import Http2Upstream, Http2UpstreamConnection
from headgate_engine.link.pool import Pool, describe
from headgate_engine.link.upstream import Http1Upstream, UpstreamConnection
from headgate_engine.plan.retry import RetryPlan
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment


@on_rig()
async def test_a_kept_connection_is_used_again(rig: Rig) -> None:
    for _ in range(5):
        assert (await rig.ask(GET)).status == 200
    assert (rig.pool.opened, rig.pool.idle_count, rig.accepted) == (1, 1, 1)


@on_rig()
async def test_a_connection_that_the_server_closed_is_not(rig: Rig) -> None:
    async def script(up: Upstream) -> None:
        await up.request()
        await up.reply()

    rig.script = script
    for _ in range(3):
        assert (await rig.ask(GET)).status == 200
        await rig.wait(lambda: rig.pool.open == 0, "the closed connection noticed")
    assert rig.accepted == 3


FAULTS = [OSError(111, "Connection refused"), TimeoutError(), asyncio.CancelledError(), ValueError("odd"), KeyError("x")]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@on_rig()
async def test_every_failed_connect_reaches_who_waits(rig: Rig, fault: BaseException) -> None:
    async def connect(factory: object) -> None:
        await asyncio.sleep(0.01)
        raise fault

    rig.pool = Pool(rig.worker, "c", b"backend:80", connect, Http1Upstream(rig.worker))
    rig.backend.pool = rig.pool
    answers = await asyncio.gather(*(rig.ask(GET) for _ in range(3)))
    assert {answer.status for answer in answers} == {504 if isinstance(fault, TimeoutError) else 503}
    assert rig.at_rest()
    rig.faults.clear()          # the task that failed unexpectedly is told to the loop as well


@pytest.mark.parametrize("protocol", [Http1Upstream, Http2Upstream])
@on_rig()
async def test_failed_connects_leave_nothing_for_the_cycle_collector(rig: Rig, protocol: Any) -> None:
    """It does not look at what was there when a configuration came into force. A backend that is down fails them all."""

    async def connect(factory: Callable[[], object]) -> None:
        factory()       # one for each address that is tried
        factory()
        raise ConnectionRefusedError(111, "Connection refused")

    rig.pool = Pool(rig.worker, "c", b"backend:80", connect, protocol(rig.worker))
    rig.backend.pool = rig.pool
    kinds = (UpstreamConnection, Http2UpstreamConnection, Http1Codec, Http2Session)

    def left() -> int:
        return sum(type(one) in kinds for one in gc.get_objects())

    assert (await rig.ask(GET)).status == 503
    gc.collect()
    gc.disable()
    try:
        before = left()
        for _ in range(20):
            assert (await rig.ask(GET)).status == 503
        # The codecs of clients go when the loop has told of their end.
        await rig.wait(lambda: left() <= before, "all are gone")
    finally:
        gc.enable()


@on_rig()
async def test_calls_beyond_the_limit_wait_for_their_turn(rig: Rig) -> None:
    rig.pool.max_connections = 2

    async def script(up: Upstream) -> None:
        while True:
            await up.request()
            await asyncio.sleep(0.01)
            await up.reply()

    rig.script = script
    answers = await asyncio.gather(*(rig.ask(GET) for _ in range(12)))
    assert {answer.status for answer in answers} == {200}
    assert rig.accepted == 2


@pytest.mark.parametrize("most", [0, 1])
@on_rig()
async def test_idle_connections_beyond_the_limit_are_closed(rig: Rig, most: int) -> None:
    rig.pool.max_idle = most

    async def script(up: Upstream) -> None:
        while True:
            await up.request()
            await asyncio.sleep(0.02)
            await up.reply()

    rig.script = script
    await asyncio.gather(*(rig.ask(GET) for _ in range(4)))
    await rig.wait(lambda: rig.pool.open == most, "the others closed")


@on_rig()
async def test_churn_leaves_nothing(rig: Rig) -> None:
    dice = random.Random(7)

    async def script(up: Upstream) -> None:
        while True:
            request = await up.request()
            kind = dice.random()
            if kind < 0.1:
                up.reset()
                return
            if kind < 0.2:
                await up.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart")
                return
            await asyncio.sleep(dice.random() * 0.005)
            await up.reply(request.body, fields="connection: close\r\n" if kind < 0.3 else "")

    async def visit() -> None:
        client = await rig.client()
        for _ in range(dice.randrange(1, 5)):
            body = b"x" * dice.choice([0, 10, 5000])
            head = b"POST / HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n" % len(body)
            kind = dice.random()
            try:
                if kind < 0.15:
                    await client.send(head + body[: len(body) // 2])
                    client.reset()
                    return
                await client.ask(head + body)
            except (ConnectionError, Truncated, TimeoutError):
                break
        client.close()

    rig.script = script
    for _ in range(10):
        await asyncio.gather(*(visit() for _ in range(20)))
    # finish() of the rig checks that no client, call, task or upstream connection is left.


@pytest.mark.parametrize(("error", "text"), [
    (OSError(111, "Connection refused"), "Connection refused"), (OSError("plain"), "plain"), (OSError(), "OSError")])
def test_failures_are_described_in_a_line(error: OSError, text: str) -> None:
    assert describe(error) == text


@on_rig()
async def test_a_call_that_finds_too_many_waiting_is_refused_at_once(rig: Rig) -> None:
    gate = asyncio.Event()

    async def connect(factory: Callable[[], asyncio.BaseProtocol]) -> None:
        await gate.wait()
        await rig.connect_upstream(factory)

    segment = Segment.create()
    pool = rig.pool = Pool(rig.worker, "c", b"backend:80", connect, Http1Upstream(rig.worker), max_waiting=3)
    pool.refusals = Counter(segment, b"refused")
    endpoint = EndpointState(segment, "owner", "e", b"backend:80", pool)
    rig.backend.endpoints = EndpointSet([endpoint], HealthPlan(evicts=True, consecutive=1))
    waiting = [rig.loop.create_task(rig.ask(GET)) for _ in range(3)]
    await rig.wait(lambda: pool.waiting_count == 3, "three wait")
    refused = await rig.ask(GET)
    assert (refused.status, refused.body) == (503, b"upstream call failed: too many calls wait for a connection")
    # Whoever calls from Python is told that the backend knows nothing of it.
    with pytest.raises(CallError, match="too many calls wait") as call:
        await HttpClient(pool, "backend:80").request("GET", "/")
    assert (call.value.refused, call.value.timed_out) == (True, False)
    assert pool.refused == 2
    known = endpoint.snapshot()
    assert (known["failures"], known["ejected"]) == (0, 0), "it is our limit that was reached"
    gate.set()
    assert {answer.status for answer in await asyncio.gather(*waiting)} == {200}
    assert (pool.refused, pool.refusals.value) == (2, 2)
    assert endpoint.snapshot()["pending"] == 0


@on_rig()
async def test_a_call_that_is_refused_by_one_endpoint_may_go_to_another(rig: Rig) -> None:
    async def never(factory: Callable[[], asyncio.BaseProtocol]) -> None:
        raise AssertionError("nobody may wait here")

    segment = Segment.create()
    full = Pool(rig.worker, "c", b"full:80", never, Http1Upstream(rig.worker), max_waiting=0)
    places = [
        EndpointState(segment, "owner", "full", b"full:80", full),
        EndpointState(segment, "owner", "free", b"backend:80", rig.pool),
    ]
    rig.backend.endpoints = EndpointSet(places)
    rig.route.retry = RetryPlan(attempts=1)
    for _ in range(20):
        assert (await rig.ask(GET)).status == 200
    assert full.refused > 0
    assert places[0].snapshot()["failures"] == 0


@on_rig()
async def test_a_call_that_leaves_makes_room_in_the_queue(rig: Rig) -> None:
    gate = asyncio.Event()

    async def connect(factory: Callable[[], asyncio.BaseProtocol]) -> None:
        await gate.wait()
        await rig.connect_upstream(factory)

    pool = rig.pool = Pool(rig.worker, "c", b"backend:80", connect, Http1Upstream(rig.worker), max_waiting=2)
    rig.backend.pool = pool
    leaving = await rig.client()
    await leaving.send(GET)
    staying = rig.loop.create_task(rig.ask(GET))
    await rig.wait(lambda: pool.waiting_count == 2, "two wait")
    leaving.reset()
    await rig.wait(lambda: pool.waiting_count == 1, "one has left")
    third = rig.loop.create_task(rig.ask(GET))
    await rig.wait(lambda: pool.waiting_count == 2, "another waits in its place")
    gate.set()
    assert {answer.status for answer in await asyncio.gather(staying, third)} == {200}
    assert pool.refused == 0


class Gate:
    """A connector that waits for leave, and counts those that wait."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.open, self.waiting, self.ended = rig, asyncio.Event(), 0, 0

    async def __call__(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        self.waiting += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.ended += 1
            raise
        finally:
            self.waiting -= 1
        await self.rig.connect_upstream(factory)


@on_rig()
async def test_a_client_that_leaves_ends_its_connect(rig: Rig) -> None:
    gate = Gate(rig)
    pool = rig.pool = rig.backend.pool = Pool(rig.worker, "c", b"backend:80", gate, Http1Upstream(rig.worker))
    for round_ in range(3):
        leaving = await rig.client()
        await leaving.send(GET)
        await rig.wait(lambda: gate.waiting == 1, "it connects")
        assert rig.worker.budget.upstream == 1
        leaving.reset()
        await rig.wait(lambda: gate.waiting == 0, "the connect has ended")
        assert (gate.ended, pool.connecting, pool.failed, rig.worker.budget.upstream) == (round_ + 1, 0, 0, 0)


@on_rig()
async def test_a_connect_goes_on_while_a_call_can_use_it(rig: Rig) -> None:
    gate = Gate(rig)
    pool = rig.pool = rig.backend.pool = Pool(
        rig.worker, "c", b"backend:80", gate, Http1Upstream(rig.worker), max_connections=1)
    leaving = await rig.client()
    await leaving.send(GET)
    await rig.wait(lambda: gate.waiting == 1, "it connects")
    staying = rig.loop.create_task(rig.ask(GET))
    await rig.wait(lambda: pool.waiting_count == 2, "another one waits")
    leaving.reset()
    await rig.wait(lambda: pool.waiting_count == 1, "one has left")
    assert (gate.waiting, gate.ended, pool.connecting) == (1, 0, 1)
    gate.open.set()
    assert (await staying).status == 200
    assert pool.opened == 1


@on_rig()
async def test_a_connect_that_has_not_begun_ends_too(rig: Rig) -> None:
    tasks: list[asyncio.Task[None]] = []

    def spawn(name: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        tasks.append(rig.spawn(name, held(coroutine)))
        return tasks[-1]

    async def held(coroutine: Coroutine[Any, Any, None]) -> None:
        coroutine.close()
        await asyncio.Event().wait()

    pool = rig.pool = rig.backend.pool = Pool(
        rig.worker, "c", b"backend:80", rig.connect_upstream, Http1Upstream(rig.worker))
    rig.worker.spawn = spawn
    leaving = await rig.client()
    await leaving.send(GET)
    await rig.wait(lambda: tasks, "its connect was asked for")
    leaving.reset()
    await rig.wait(lambda: tasks[0].done(), "ended")
    assert (pool.connecting, rig.worker.budget.upstream) == (0, 0)
    rig.worker.spawn = rig.spawn
    assert (await rig.ask(GET)).status == 200


@on_rig()
async def test_a_backend_that_chooses_http1_gets_as_many_connections_as_calls(rig: Rig) -> None:
    """Until it has chosen, one connection is thought to carry all of them."""
    gate = Gate(rig)

    async def connect(factory: Any) -> None:
        def made() -> asyncio.BaseProtocol:
            factory.negotiated("http/1.1")
            found: asyncio.BaseProtocol = factory()
            return found

        await gate(made)

    async def script(up: Upstream) -> None:
        await up.request()
        held.append(up)
        await answered.wait()
        await up.reply()

    held: list[Upstream] = []
    answered = asyncio.Event()
    rig.script = script
    pool = rig.pool = rig.backend.pool = Pool(rig.worker, "c", b"backend:80", connect, Http1Upstream(rig.worker))
    pool.other = Http2Upstream(rig.worker)
    asked = [rig.loop.create_task(rig.ask(GET)) for _ in range(6)]
    await rig.wait(lambda: pool.waiting_count == 6, "all wait")
    assert (pool.connecting, gate.waiting) == (1, 1)
    gate.open.set()
    await rig.wait(lambda: len(held) == 6, "each has a connection")
    answered.set()
    assert {(await one).status for one in asked} == {200}
    assert pool.opened == 6
    answered.clear()
    again = [rig.loop.create_task(rig.ask(GET)) for _ in range(8)]
    await rig.wait(lambda: len(held) == 14, "it is known what the backend chooses")
    answered.set()
    assert {(await one).status for one in again} == {200}


@on_rig()
async def test_upgrades_have_a_pool_of_their_own(rig: Rig) -> None:
    made: list[Pool] = []

    def make() -> Pool:
        made.append(Pool(rig.worker, "u", b"backend:80", rig.connect_upstream, Http1Upstream(rig.worker)))
        return made[-1]

    async def script(up: Upstream) -> None:
        while True:
            await up.request()
            await up.reply()

    rig.script = script
    rig.pool.make_upgrading = make
    upgrade = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"
    assert (await rig.ask(GET)).status == 200
    assert not made
    for _ in range(2):
        assert (await rig.ask(upgrade)).status == 200
    [own] = made
    assert (rig.pool.opened, own.opened) == (1, 1)
    rig.pool.close()
    assert own.closed
