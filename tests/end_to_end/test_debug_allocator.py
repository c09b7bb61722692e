"""The debugging allocator of CPython is in every process of a gateway: what `make debug-malloc` rests on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.processes import children_of
from tests.end_to_end.running import Gateway

DIRECT = """
gateways: {default: {port: {port}}}
routes: [{policies: {directResponse: {status: 200, body: here}}}]
"""


def tree(pid: int) -> Iterator[int]:
    """The process and all that come of it."""
    yield pid
    for child in children_of(pid):
        yield from tree(child)


def allocator(pid: int) -> str | None:
    """What the environment of a process says of its allocator."""
    pairs = (pair.partition("=") for pair in Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0"))
    return next((value for name, _, value in pairs if name == "PYTHONMALLOC"), None)


@pytest.mark.parametrize("environment", [{"PYTHONMALLOC": "debug"}])
def test_every_process_of_a_gateway_has_it(gateway: Callable[..., Gateway], environment: dict[str, str]) -> None:
    running = gateway(DIRECT, workers=2, environment=environment)
    assert running.fetch(running.url)[1] == "here"
    processes = set(tree(running.process.pid))
    assert processes >= set(running.worker_pids())
    assert {pid: allocator(pid) for pid in processes} == dict.fromkeys(processes, "debug")
    assert os.getpid() not in processes
