"""Calls to another port of the process: both requests live and end together, and nothing is left of them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest
from rig import Rig, Upstream, on_rig

from headgate_engine.http1.receiver import ReceiverLimits
from headgate_engine.link.client import CallError, HttpClient
from headgate_engine.link.inward import INWARD_BACKEND, MAX_HOPS, InwardConnection, InwardProtocol
from headgate_engine.link.pool import Pool
from headgate_engine.plan.plans import BackendPlan, BindPlan, ListenerPlan, RoutePlan
from headgate_engine.route.table import RouteRule, RouteTable

INNER = "bind/internal/1"


def way_to(rig: Rig, key: str) -> BackendPlan:
    """A backend that leads to a port."""

    async def connect(factory: Callable[[], asyncio.BaseProtocol]) -> None:
        connection = factory()
        assert isinstance(connection, InwardConnection)
        connection.lead_to(key)

    plan = BackendPlan("inner", "http", INWARD_BACKEND)
    plan.pool = Pool(rig.worker, key, b"internal:1", connect, InwardProtocol(rig.worker))
    return plan


def lead(rig: Rig, key: str = INNER) -> Pool:
    """Let the rig's port lead to an internal one, which leads to the rig's backend."""
    inner = BindPlan(INNER, ReceiverLimits())
    inner.sole_listener = ListenerPlan("inner", "gw", "default", RouteTable([RouteRule(target=rig.route)]))
    rig.worker.set_bind(INNER, inner)
    plan = way_to(rig, key)
    outer = RoutePlan("outer", "default", "", (plan,), (1,))
    rig.listener.routes = RouteTable([RouteRule(target=outer)])
    return plan.pool


def post(body: bytes) -> bytes:
    return b"POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


@on_rig()
async def test_requests_reach_the_backend_of_the_other_port(rig: Rig) -> None:
    pool = lead(rig)
    client = await rig.client()
    for number in range(20):
        answer = await client.ask(post(b"x" * number))
        assert answer.status == 200
        assert rig.seen[-1].body == b"x" * number
    assert (pool.opened, pool.open, pool.idle_count) == (1, 1, 1)
    assert rig.pool.opened == 1
    pool.close()


@on_rig()
async def test_a_body_in_pieces_and_a_long_one(rig: Rig) -> None:
    pool = lead(rig)
    client = await rig.client()
    await client.send(b"POST /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(50):
        await client.send(b"5\r\nhello\r\n")
        await asyncio.sleep(0)
    await client.send(b"0\r\n\r\n")
    assert (await client.answer()).status == 200
    assert rig.seen[-1].body == b"hello" * 50
    body = bytes(range(256)) * 8192
    assert (await client.ask(post(body))).status == 200
    assert rig.seen[-1].body == body
    pool.close()


@on_rig()
async def test_a_client_that_resets_ends_the_call_of_the_other_port(rig: Rig) -> None:
    pool = lead(rig)
    ended = asyncio.Event()

    async def waits(up: Upstream) -> None:
        await up.request()
        await up.closed()
        ended.set()

    rig.script = waits
    client = await rig.client()
    await client.send(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
    await rig.wait(lambda: rig.pool.open == 1, "the backend has the call")
    client.reset()
    await ended.wait()
    await rig.wait(lambda: pool.idle_count == 1, "the way is free")
    pool.close()


@on_rig()
async def test_an_answer_that_breaks_off_breaks_off_for_the_client(rig: Rig) -> None:
    pool = lead(rig)

    async def breaks(up: Upstream) -> None:
        await up.request()
        await up.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")

    rig.script = breaks
    client = await rig.client()
    await client.send(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
    whole = await client.ended()
    assert whole.endswith(b"half")
    pool.close()


@on_rig()
async def test_a_port_that_is_gone(rig: Rig) -> None:
    pool = lead(rig, "bind/internal/2")
    answer = await rig.ask(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
    assert (answer.status, answer.body) == (503, b"upstream call failed: nobody serves the internal port")
    pool.close()


@on_rig()
async def test_a_circle_ends(rig: Rig) -> None:
    pool = lead(rig)
    again = way_to(rig, INNER)
    circle = RoutePlan("circle", "default", "", (again,), (1,))
    rig.worker.slot(INNER).plan.sole_listener.routes = RouteTable([RouteRule(target=circle)])
    answer = await rig.ask(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
    assert (answer.status, answer.body) == (500, b"too many internal hops")
    assert rig.worker.stats()["requests"] == MAX_HOPS + 1
    pool.close()
    again.pool.close()


@on_rig()
async def test_a_call_of_our_own_is_no_request_of_a_port(rig: Rig) -> None:
    pool = lead(rig)
    with pytest.raises(CallError, match="nobody serves"):
        await HttpClient(pool, "a").request("GET", "/a")
    pool.close()


def test_a_connection_belongs_to_a_pool() -> None:
    with pytest.raises(TypeError):
        InwardConnection().lead_to(INNER)
    with pytest.raises(TypeError):
        InwardProtocol(None)  # type: ignore[arg-type]


@on_rig()
async def test_nothing_is_left_for_the_collector(rig: Rig) -> None:
    pool = lead(rig)
    await rig.ask(post(b"x"))
    gc.collect()
    gc.disable()
    try:
        before = len([one for one in gc.get_objects() if type(one).__name__ in ("InwardCall", "InwardAnswer")])
        for _ in range(20):
            await rig.ask(post(b"x" * 1000))
        after = len([one for one in gc.get_objects() if type(one).__name__ in ("InwardCall", "InwardAnswer")])
    finally:
        gc.enable()
    assert after <= before
    pool.close()
