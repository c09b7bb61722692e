"""The descriptors of a worker: who may open another one, what is closed to make room, and what is told."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rig import GET, Message, Rig, Upstream, on_rig

from headgate_engine.link import worker
from headgate_engine.link.budget import DescriptorBudget
from headgate_engine.link.endpoints import EndpointSet, EndpointState, HealthPlan
from headgate_engine.link.pool import Pool
from headgate_engine.link.upstream import Http1Upstream
from headgate_engine.shared.segment import Segment


@pytest.mark.parametrize("limit", [64, 128, 1024, 65536, 1 << 20])
def test_clients_leave_a_fifth_to_backends(limit: int) -> None:
    budget = DescriptorBudget(limit)
    assert 0 < budget.client_share() <= (limit - 24) * 4 // 5 <= limit * 4 // 5
    assert (budget.limit, budget.upstream, budget.denied, budget.shed) == (limit, 0, 0, 0)


@on_rig(faults=1)     # told once
async def test_a_call_without_a_descriptor_is_refused_and_told_once(rig: Rig) -> None:
    release = asyncio.Event()

    async def script(up: Upstream) -> None:
        while True:
            await up.request()
            await release.wait()
            await up.reply()

    rig.script = script
    # Room for two clients and two connections to backends, but not for three.
    budget = rig.worker.budget = DescriptorBudget(24 + 4 + 5)
    budget.join(rig.pool)
    segment = Segment.create()
    endpoint = EndpointState(segment, "owner", "e", b"backend:80", rig.pool)
    rig.backend.endpoints = EndpointSet([endpoint], HealthPlan(evicts=True, consecutive=1))
    served = [rig.loop.create_task(rig.ask(GET)) for _ in range(2)]
    await rig.wait(lambda: rig.pool.open == 2, "two are served")
    for _ in range(3):
        refused = await rig.ask(GET)
        assert refused.status == 503
        assert refused.body == b"upstream call failed: no descriptor is left for a connection"
    assert (rig.pool.refused, budget.denied, budget.upstream) == (3, 3, 2)
    assert endpoint.snapshot()["failures"] == 0, "it is our limit that was reached"
    release.set()
    assert {answer.status for answer in await asyncio.gather(*served)} == {200}
    assert (await rig.ask(GET)).status == 200


@on_rig()
async def test_idle_connections_make_room(rig: Rig) -> None:
    budget = rig.worker.budget = DescriptorBudget(24 + 4 + 3)
    budget.join(rig.pool)
    other = Pool(rig.worker, "other", b"other:80", rig.connect_upstream, Http1Upstream(rig.worker))
    client = await rig.client()
    for _ in range(3):
        rig.backend.pool = rig.pool
        assert (await client.ask(GET)).status == 200
        rig.backend.pool = other
        assert (await client.ask(GET)).status == 200
    await rig.wait(lambda: rig.pool.open + other.open == 2 == budget.upstream, "what was shed is closed")
    second = await rig.client()
    rig.backend.pool = rig.pool
    assert (await second.ask(GET)).status == 200
    third = Pool(rig.worker, "third", b"third:80", rig.connect_upstream, Http1Upstream(rig.worker))
    rig.backend.pool = third
    assert (await second.ask(GET)).status == 200
    assert budget.shed > 0
    assert budget.denied == 0
    for pool in (other, third):
        pool.close()
    await rig.wait(lambda: rig.pool.open == budget.upstream, "the others closed")


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
@on_rig(faults=1)     # told once
async def test_a_refusal_of_the_kernel_is_no_fault_of_the_endpoint(rig: Rig, number: int) -> None:
    async def connect(factory: Callable[[], asyncio.BaseProtocol]) -> None:
        raise OSError(number, os.strerror(number))

    segment = Segment.create()
    pool = rig.pool = Pool(rig.worker, "c", b"backend:80", connect, Http1Upstream(rig.worker))
    endpoint = EndpointState(segment, "owner", "e", b"backend:80", pool)
    rig.backend.endpoints = EndpointSet([endpoint], HealthPlan(evicts=True, consecutive=1))
    answers: list[Message] = [await rig.ask(GET) for _ in range(3)]
    assert {(answer.status, answer.body) for answer in answers} == {
        (503, f"upstream call failed: {os.strerror(number)}".encode())}
    assert endpoint.snapshot()["failures"] == 0
    assert (pool.refused, rig.worker.budget.upstream) == (3, 0)


@on_rig(faults=1)     # told once
async def test_a_connect_is_tried_again_where_idle_connections_make_room(rig: Rig) -> None:
    tries = []

    async def connect(factory: Callable[[], asyncio.BaseProtocol]) -> None:
        tries.append(rig.pool.open)
        if len(tries) == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        await rig.connect_upstream(factory)

    assert (await rig.ask(GET)).status == 200
    pool = rig.backend.pool = Pool(rig.worker, "c", b"backend:80", connect, Http1Upstream(rig.worker))
    assert (await rig.ask(GET)).status == 200
    assert tries == [1, 0], "the second try finds the idle connection closed"
    pool.close()
    await rig.wait(lambda: pool.open == 0, "closed")


@on_rig()
async def test_clients_beyond_the_descriptors_are_refused(rig: Rig) -> None:
    rig.worker.budget = DescriptorBudget(24 + 4 + 1)
    kept = await rig.client()
    await rig.wait(lambda: rig.worker.connection_count() == 1, "one is served")
    more = [await rig.client() for _ in range(4)]
    await rig.wait(lambda: rig.worker.refused > 0, "refused")
    assert rig.worker.connection_count() < 4
    for client in more:
        client.close()
    await rig.wait(lambda: rig.worker.connection_count() == 1, "they are gone")
    kept.close()


@on_rig()
async def test_refused_clients_are_told_once_in_a_while(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(worker, "logger", SimpleNamespace(warning=lambda text, extra: told.append(extra["refused"])))
    rig.worker.max_connections = 0
    monkeypatch.setattr(worker, "TELL_SECONDS", 0.0)
    assert not any(rig.worker.admit() for _ in range(3))
    monkeypatch.setattr(worker, "TELL_SECONDS", 3600.0)
    assert not any(rig.worker.admit() for _ in range(5))
    assert told == [1, 2, 3], "each, until that is too often"
