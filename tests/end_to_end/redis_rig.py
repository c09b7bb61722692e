"""A real Redis server for tests, on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from tests.end_to_end.running import PATIENCE, free_port

REDIS = shutil.which("redis-server")
needs_redis = pytest.mark.skipif(REDIS is None, reason="redis-server is not installed (Debian: redis-server)")


class RedisServer:
    """A server without persistence: what it knows is lost with it. `options`: more of its command line."""

    def __init__(self, folder: Path, *options: str, plain: bool = True) -> None:
        self.port = free_port()
        self._folder = folder
        listening = ["--port", str(self.port)] if plain else ["--port", "0", "--tls-port", str(self.port)]
        self._options = [*listening, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", *options]
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        assert REDIS is not None
        with (self._folder / "redis.log").open("ab") as log:
            process = subprocess.Popen([REDIS, *self._options, "--dir", str(self._folder)], stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE
        while True:
            assert process.poll() is None, (self._folder / "redis.log").read_text()
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        self.process = self._start()

    def hang(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def ask(self, *words: str) -> str:
        """Return what it answers to a command, as redis-cli prints it."""
        done = subprocess.run(
            ["redis-cli", "-p", str(self.port), *words], check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout.strip()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
