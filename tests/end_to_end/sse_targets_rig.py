"""What tests of sse targets and others share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PEER = Path(__file__).resolve().parents[1] / "peers" / "sdk_server.py"


@pytest.fixture
def peer() -> Iterator[Callable[..., tuple[subprocess.Popen[str], int]]]:
    """`peer(kind, name, port=0)` starts a server of the official SDK; gives process and port."""
    running: list[subprocess.Popen[str]] = []

    def start(kind: str, name: str, port: int = 0) -> tuple[subprocess.Popen[str], int]:
        words = [sys.executable, str(PEER), kind, name, str(port)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
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
