"""What tests of sse targets and others share."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests import forked_rig

Peer = Callable[..., tuple[Any, int]]


@pytest.fixture
def peer() -> Iterator[Peer]:
    """`peer(kind, name, port=0)` starts a server of the official SDK; gives process and port."""
    running: list[Any] = []

    def start(kind: str, name: str, port: int = 0) -> tuple[Any, int]:
        process = forked_rig.start("tests.peers.sdk_server", [kind, name, str(port)], subprocess.PIPE, imports=forked_rig.SDK)
        running.append(process)
        assert process.stdout is not None
        return process, int(process.stdout.readline().split()[1])

    yield start
    for process in running:
        process.kill()
        process.wait(40)


def sse(port: int, policies: str = "") -> str:
    text = f'sse: {{host: "127.0.0.1:{port}"}}'
    return f"{text}\n    policies: {policies}" if policies else text
