"""Worker counts."""

from __future__ import annotations

import pytest

from headgate.ir.process import WorkerCount


@pytest.mark.parametrize(
    ("count", "cpus", "workers"),
    [
        (WorkerCount(), 4, 4),
        (WorkerCount(), 0, 1),
        (WorkerCount(count=3), 4, 3),
        (WorkerCount(percent=50), 5, 2),
        (WorkerCount(percent=1), 4, 1),
        (WorkerCount(percent=200), 4, 8),
    ],
)
def test_worker_counts_resolve_to_at_least_one(count: WorkerCount, cpus: int, workers: int) -> None:
    assert count.resolve(cpus) == workers
