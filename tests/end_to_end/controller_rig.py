"""`headgate controller` as a process, and the small API server on a loop of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml
from fake_api import FakeApiServer
from tests.end_to_end.running import free_port

SECONDS = 60


class RunningController:
    """`words`: further arguments of the command."""

    def __init__(self, kubeconfig: Path, folder: Path, *words: str, **variables: str) -> None:
        self.health, self.metrics, self.admin = free_port(), free_port(), free_port()
        self.log = folder / f"controller-{self.admin}.log"
        environ = {
            **os.environ, "KUBECONFIG": str(kubeconfig), "HEADGATE_BIND_ADDRESS": "127.0.0.1", "HEADGATE_NAMESPACE": "default",
            "HEADGATE_HEALTH_PORT": str(self.health), "HEADGATE_METRICS_PORT": str(self.metrics),
            # Several may run in one test, and others beside it.
            "HEADGATE_XDS_PORT": str(free_port()), **variables,
        }  # fmt: skip
        command = [sys.executable, "-m", "headgate.cli.main", "controller", "--admin-port", str(self.admin), *words]
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(command, env=environ, stderr=file, stdout=file)

    def get(self, port: int, path: str, method: str = "GET") -> httpx.Response | None:
        try:
            return httpx.request(method, f"http://127.0.0.1:{port}{path}", timeout=SECONDS)
        except httpx.TransportError:
            assert self.process.poll() is None, self.log.read_text()
            return None

    def wait_ready(self) -> None:
        self.wait(lambda: getattr(self.get(self.health, "/readyz"), "status_code", 0) == 200)

    def wait(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


class InThread:
    """The small API server on a loop of its own."""

    def __init__(self) -> None:
        self.server = FakeApiServer()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._started.wait(SECONDS)

    async def _run(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with self.server.running():
            self._started.set()
            await self._end.wait()

    def do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        async def run() -> Any:
            return function(*arguments)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(SECONDS)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()


@contextmanager
def controller(kubeconfig: Path, folder: Path, *words: str, **variables: str) -> Iterator[RunningController]:
    """Run one until the end of the block."""
    running = RunningController(kubeconfig, folder, *words, **variables)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def kubeconfig_of(folder: Path, server: str, token: str = "t", authority: str = "") -> Path:
    """Write a kubeconfig. `authority`: a file."""
    cluster = {"server": server, **({"certificate-authority": authority} if authority else {})}
    document = {
        "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": token}}],
    }  # fmt: skip
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path
