"""A step: processes that begin together, what they tell, and what the target takes meanwhile."""

from __future__ import annotations

import os
import resource
import socket

import pytest

from headgate.capacity.errors import BenchError
from headgate.capacity.own_gateway import OwnPeers
from headgate.capacity.stand_ins.answers import Behaviour
from headgate.capacity.step import LoadShape, Tick, Traffic, first_answer, raise_descriptor_limit, run_step
from headgate.capacity.transport import Trust, requests_of, target_of
from headgate.capacity.usage import TargetMeter
from headgate.capacity.workload import RequestSpec, TargetPlace


def traffic(port: int, *specs: RequestSpec) -> Traffic:
    place = TargetPlace(False, "127.0.0.1", port, "/")
    return Traffic(target_of(place, Trust(), False), requests_of(specs or (RequestSpec("GET", "/", ()),), place))


@pytest.mark.parametrize("processes", [1, 3])
def test_processes_share_rate_and_connections(processes: int) -> None:
    ticks: list[Tick] = []
    with OwnPeers(Behaviour(size=9), 1) as peers:
        shape = LoadShape(4, processes=processes, warm_up=0.3, seconds=1.0, grace=60.0, timeout=60.0)
        step = run_step(traffic(peers.port), shape, 60.0, TargetMeter(peers.pid), ticks.append)
    assert (step.good, step.failed, step.sent, step.latency.count) == (60, 0, 60, 60)
    assert sum(second.good for second in step.series) == 60
    assert step.generator_cpu_s > 0
    assert step.target is not None
    assert step.target.processes == 1
    assert step.target.peak_kb > 1000
    assert all(one.good + one.failed <= 60 for one in ticks)


def test_the_first_answer_is_looked_at() -> None:
    with OwnPeers(Behaviour(), 1) as peers:
        first_answer(traffic(peers.port), LoadShape(1))
        odd = RequestSpec("POST", "/mcp", (), b"{}", judgement="rpc")
        with pytest.raises(BenchError, match="the first request failed: rpc: "):
            first_answer(traffic(peers.port, RequestSpec("GET", "/", ()), odd), LoadShape(1))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(BenchError, match="connect: refused"):
        first_answer(traffic(port), LoadShape(1))


def test_too_many_descriptors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: given.append(limits))
    raise_descriptor_limit(1000)
    assert given == []
    raise_descriptor_limit(4000)
    assert given == [(4000, 4096)]
    with pytest.raises(BenchError, match="4097 descriptors are needed and 4096 allowed"):
        raise_descriptor_limit(4097)


def test_a_process_that_dies_is_told() -> None:
    with OwnPeers(Behaviour(), 1) as peers:
        shape = LoadShape(1, seconds=600.0)
        # Not only the peers: other tests of this process may have left a process that they share.
        before = children()

        def end(tick: Tick) -> None:
            for pid in children():
                if pid not in before:
                    os.kill(pid, 9)

        with pytest.raises(BenchError, match="has ended"):
            run_step(traffic(peers.port), shape, 10.0, None, end)


def children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as found:
        return [int(pid) for pid in found.read().split()]
