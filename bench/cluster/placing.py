"""Which processor runs what. In a cluster the API server, etcd and the controller run on other machines than a gateway, so here they get another
processor than it: CONTROL has them and who makes changes, TRAFFIC the data plane, its backends and the client that asks for stalls."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CONTROL: Final = 0
TRAFFIC: Final = 1
SERVERS: Final = ("etcd", "kube-apiserver", "kube-controller-manager")


def apart(kubeconfig: str) -> None:
    """Put this thread, what it starts from now on, and the servers of `ci/cluster-lab` that run beside their `kubeconfig` on CONTROL."""
    os.sched_setaffinity(0, {CONTROL})
    for name in SERVERS:
        file = Path(kubeconfig).parent / f"{name}.pid"
        if file.exists():
            _put(int(file.read_text()))


def _put(pid: int) -> None:
    """Move all threads of a process. A thread that is started meanwhile is where its maker is, so who was moved makes no others."""
    moved: set[int] = set()
    while left := {int(one.name) for one in Path(f"/proc/{pid}/task").iterdir()} - moved:
        for thread in left:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread, {CONTROL})
        moved |= left


@contextlib.contextmanager
def beside_traffic() -> Iterator[None]:
    """Start processes and threads on TRAFFIC, if this thread is where `apart` has put it."""
    before = os.sched_getaffinity(0)
    if before == {CONTROL}:
        os.sched_setaffinity(0, {TRAFFIC})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
