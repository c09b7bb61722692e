"""Connections of each worker, seen by all."""

from __future__ import annotations

import pytest

from headgate_engine.shared.loads import WorkerLoads
from headgate_engine.shared.segment import Segment


def test_one_object_shows_what_another_says() -> None:
    segment = Segment.create()
    first, second = WorkerLoads(segment, 3), WorkerLoads(segment, 3)
    assert first.counts() == [None, None, None]
    first.accept(1, True)
    assert second.counts() == [None, 0, None]
    second.accept(1, False)
    assert first.counts() == [None, None, None]


def test_a_worker_that_is_gone_accepts_nothing() -> None:
    loads = WorkerLoads(Segment.create(), 2)
    loads.accept(0, True)
    loads.accept(1, True)
    loads.reset(1)
    assert loads.counts() == [0, None]


@pytest.mark.parametrize("worker", [-1, 2, 1000])
def test_there_are_no_other_workers(worker: int) -> None:
    loads = WorkerLoads(Segment.create(), 2)
    with pytest.raises(IndexError):
        loads.accept(worker, True)
    with pytest.raises(IndexError):
        loads.reset(worker)


@pytest.mark.parametrize("workers", [0, -1, 100_000])
def test_a_number_of_workers_that_cannot_be(workers: int) -> None:
    with pytest.raises(ValueError, match="workers"):
        WorkerLoads(Segment.create(), workers)


def test_all_processes_have_the_same_number_of_workers() -> None:
    segment = Segment.create()
    kept = WorkerLoads(segment, 2)
    with pytest.raises(ValueError, match="another kind or size"):
        WorkerLoads(segment, 3)
    assert kept.workers == 2
