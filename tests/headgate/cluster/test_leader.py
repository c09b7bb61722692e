"""Which of several replicas leads, with a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from fake_api import FakeApiServer
from waiting import no_time, until

from headgate.cluster.client import KubernetesClient
from headgate.cluster.kubeconfig import ClusterAccess
from headgate.cluster.leader import LEASE_SECONDS, RENEW_SECONDS, LeaderElection
from headgate.net.tasks import spawn

LEASES = "/apis/coordination.k8s.io/v1/leases"
ONE = "/apis/coordination.k8s.io/v1/namespaces/own/leases/the-lease"


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


class Replica:
    """Its election takes a turn whenever the test says so."""

    def __init__(self, server: FakeApiServer, name: str, clock: Clock) -> None:
        self.client = KubernetesClient(ClusterAccess(server=server.url), no_time)
        self.events: list[str] = []
        self._turns = asyncio.Semaphore(0)
        self.turned = 0
        self.election = LeaderElection(self.client, ("own", "the-lease"), name, lambda: self.events.append("led"), self._lost)
        self.election.clock, self.election.sleep = clock, self._sleep
        self.task = spawn(f"replica {name}", self.election.run())

    async def _lost(self) -> None:
        self.events.append("lost")

    async def _sleep(self, _seconds: float) -> None:
        self.turned += 1
        await self._turns.acquire()

    async def turn(self) -> bool:
        """Let it try once more; return whether it leads."""
        await until(lambda: self.turned)
        before = self.turned
        self._turns.release()
        await until(lambda: self.turned > before)
        return self.election.leads


def with_replicas(body: Callable[[FakeApiServer, Replica, Replica, Clock], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with FakeApiServer().running() as server:
            clock = Clock()
            first = Replica(server, "first", clock)
            await until(lambda: first.turned)
            second = Replica(server, "second", clock)
            await until(lambda: second.turned)
            try:
                await body(server, first, second, clock)
            finally:
                for one in (first, second):
                    one.task.cancel()
                    await asyncio.gather(one.task, return_exceptions=True)
                    await one.client.close()

    asyncio.run(run())


def test_one_leads_as_long_as_it_renews() -> None:
    async def body(server: FakeApiServer, first: Replica, second: Replica, clock: Clock) -> None:
        for _ in range(30):
            clock.seconds += 2
            assert await first.turn()
            assert not await second.turn()
        spec = server.get(LEASES, "own/the-lease")["spec"]
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("first", LEASE_SECONDS, 0)
        assert first.events == ["led"]
        assert second.events == []

    with_replicas(body)


def test_the_lease_of_one_that_is_gone_is_taken_when_it_has_run_out() -> None:
    async def body(server: FakeApiServer, _first: Replica, second: Replica, clock: Clock) -> None:
        clock.seconds += LEASE_SECONDS - 1
        assert not await second.turn()
        clock.seconds += 2
        assert await second.turn()
        spec = server.get(LEASES, "own/the-lease")["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("second", 1)

    with_replicas(body)


def test_a_leader_that_wakes_up_late_leads_no_longer() -> None:
    async def body(_server: FakeApiServer, first: Replica, second: Replica, clock: Clock) -> None:
        clock.seconds += LEASE_SECONDS + 1
        assert await second.turn()
        assert not await first.turn()
        assert first.events == ["led", "lost"]

    with_replicas(body)


def test_a_leader_that_cannot_renew_gives_up_before_another_takes_over() -> None:
    async def body(server: FakeApiServer, first: Replica, _second: Replica, clock: Clock) -> None:
        server.refuse("GET /apis/coordination", 500, "InternalError")
        clock.seconds += RENEW_SECONDS - 1
        assert await first.turn()
        clock.seconds += 2
        assert not await first.turn()
        server.refuse("GET /apis/coordination", 0, "")
        assert await first.turn()
        assert first.events == ["led", "lost", "led"]

    with_replicas(body)


def test_a_leader_waits_for_no_answer_longer_than_its_renewal_lasts() -> None:
    async def body(_server: FakeApiServer, first: Replica, second: Replica, clock: Clock) -> None:
        assert second.election._patience() == RENEW_SECONDS
        clock.seconds += RENEW_SECONDS - 1
        assert first.election._patience() == 1
        clock.seconds += 2
        # Nobody else has taken it, but somebody might have by the time of the answer.
        assert await first.turn()
        assert first.events == ["led", "lost", "led"]
        assert first.election._patience() == RENEW_SECONDS

    with_replicas(body)


def test_a_server_that_does_not_answer_is_told_in_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def silent() -> bool:
        raise TimeoutError

    async def body(_server: FakeApiServer, first: Replica, _second: Replica, _clock: Clock) -> None:
        monkeypatch.setattr(first.election, "_try", silent)
        await first.turn()
        assert [one.getMessage() for one in caplog.records if one.levelname == "WARNING"] == ["lease the-lease: no answer in time"]

    with_replicas(body)


def test_a_leader_that_ends_releases_the_lease() -> None:
    async def body(server: FakeApiServer, first: Replica, second: Replica, _clock: Clock) -> None:
        first.task.cancel()
        await first.election.release()
        assert first.events == ["led", "lost"]
        assert server.get(LEASES, "own/the-lease")["spec"]["holderIdentity"] == ""
        assert await second.turn()
        await first.election.release()
        assert second.election.leads

    with_replicas(body)


def test_of_two_that_are_as_quick_one_leads() -> None:
    async def run() -> None:
        async with FakeApiServer().running() as server:
            clock = Clock()
            replicas = [Replica(server, f"r{number}", clock) for number in range(5)]
            await until(lambda: all(one.turned for one in replicas))
            assert sum(one.election.leads for one in replicas) == 1
            for one in replicas:
                one.task.cancel()
                await one.client.close()

    asyncio.run(run())
