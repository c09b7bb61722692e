"""The peers and the gateway that a measurement starts by itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from headgate.capacity.errors import BenchError
from headgate.capacity.stand_ins.answers import Behaviour
from headgate.capacity.stand_ins.server import listening, serve

# The provider whose API is the one that clients speak: nothing is translated.
_PROVIDERS: Final = {"completions": "openai", "messages": "anthropic", "responses": "openai"}
_LOG_LINES: Final = 5


def free_port() -> int:
    """Return a port of loopback that nobody has."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def configuration(kind: str, form: str, port: int, backend: int, workers: int) -> dict[str, Any]:
    """Return the configuration of a gateway in front of the built-in peers: one way to them, and no policy."""
    found: dict[str, Any] = {
        "config": {
            "workerThreads": workers, "adminAddr": "off", "statsAddr": "off", "readinessAddr": "off",
            "logging": {"level": "warn"},
        },
        "gateways": {"default": {"port": port}},
    }  # fmt: skip
    if kind == "mcp":
        found["mcp"] = {"targets": [{"name": "bench", "mcp": {"host": f"http://127.0.0.1:{backend}/mcp"}}]}
    elif kind in ("chat", "stream"):
        model = {
            "name": "*",
            "provider": _PROVIDERS[form],
            "params": {"baseUrl": f"http://127.0.0.1:{backend}/v1", "apiKey": "bench"},
        }
        found["llm"] = {"models": [model]}
    else:
        found["routes"] = [
            {
                "name": "bench",
                "matches": [{"path": {"pathPrefix": "/"}}],
                "backends": [{"host": f"127.0.0.1:{backend}"}],
            }
        ]
    return found


class OwnPeers:
    """The built-in peers as a process of their own, at a port of loopback, which ends with this one."""

    def __init__(self, behaviour: Behaviour, processes: int) -> None:
        listener = listening("127.0.0.1", 0)
        self.port: int = listener.getsockname()[1]
        reading, self._lifeline = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._lifeline)
            # The terminal's interrupt is for the parent, which ends us.
            os.setpgid(0, 0)
            try:
                serve(listener, behaviour, processes, reading)
            finally:
                os._exit(0)
        # Here as well: whoever is first.
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(self.pid, self.pid)
        listener.close()
        os.close(reading)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
        os.close(self._lifeline)


class BenchGateway:
    """A gateway as a process of its own, which ends with this one. `log`: what it said last."""

    def __init__(self, words: list[str], environ: dict[str, str] | None = None) -> None:
        """words: its arguments. Raises BenchError if it does not begin to serve."""
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (as long as the gateway)
        reading, writing = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *words],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(writing,),
            env={**(environ or os.environ), "READY_FD": str(writing), "HEADGATE_PARENT": str(os.getpid())},
            process_group=0,
        )
        os.close(writing)
        with open(reading, "rb") as pipe:
            ready = pipe.read()
        if not ready:
            self._process.wait()
            raise BenchError(f"the gateway did not start:\n{self.log()}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def log(self) -> str:
        """Return the last lines of its log."""
        self._log.seek(0)
        return "\n".join(self._log.read().splitlines()[-_LOG_LINES:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def write_configuration(folder: Path, document: dict[str, Any]) -> Path:
    """Write a configuration and return its path."""
    path = folder / "headgate.json"
    path.write_text(json.dumps(document, indent=1))
    return path
