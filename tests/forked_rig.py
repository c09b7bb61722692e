"""Programs of this package that tests start by the hundred: forked from a process that has imported what they need.

A `headgate` that is executed spends two thirds of its start on Python and its imports. `start` gives a process that runs the same
module as `__main__`, with the arguments, folder, environment and standard output that it would have had. Variables that Python or C
libraries read before `main` cannot be given to a fork: where the environment is another than that of this process was at first, the
program is executed, unless only variables of `READ_LATE` and those that a configuration names differ. So it is for tests about processes themselves (marker `executed`).
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

# What `headgate -f FILE` imports whatever the file says, what it imports for the configurations of many tests (the longest of them take
# a quarter of a second of a processor for it), and what the sample servers share.
IMPORTED = (
    "headgate.cli", "headgate.server.start", "headgate.server.ending", "headgate.admin.web", "headgate.admin.stats", "headgate.admin.readiness",
    "headgate.admin.routes", "headgate.expr.compile", "headgate.expr.transport", "headgate.pipeline.llm", "headgate.backend.llm.guards.step",
    "headgate.config.llm_models", "headgate.pipeline.mcp", "headgate.policy.identity", "headgate.policy.backend_auth",
    "headgate.policy.direct_response", "headgate.pipeline.virtual_keys", "headgate.telemetry.spend.ledger", "headgate.telemetry.requests.sqlite",
    "headgate.telemetry.requests.writer", "headgate.config.resources.reading", "headgate.config.resources.sqlite", "headgate.config.resources.postgres",
    "headgate.net.redis_store", "headgate.policy.shared.compile", "headgate.net.tls_library", "encodings.idna",
    "cryptography.hazmat.primitives.ciphers.aead", "headgate.sample.web",
)
# What servers of the official SDK of MCP are made of (tests/peers/sdk_server.py): a second and a half.
SDK = ("mcp.server.mcpserver", "mcp.server.sse", "mcp.server.streamable_http_manager", "uvicorn", "uvicorn.protocols.http.auto", "uvicorn.lifespan.on")
# How variables begin that only this package reads, and only when it needs them.
READ_LATE = (
    "HEADGATE_", "OIDC_COOKIE_SECRET", "MODEL_CATALOG_SOURCE", "LOCALITY", "ADMIN_ADDR", "DYNAMIC_CA_", "RUST_LOG", "SPIFFE_ENDPOINT_SOCKET",
    "SESSION_KEY", "AWS_", "AZURE_",
)
# pytest says in it which test runs.
OF_PYTEST = "PYTEST_CURRENT_TEST"


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != OF_PYTEST}


def different(environment: Mapping[str, str]) -> dict[str, str | None]:
    """The variables that differ from those at first; None: there is none."""
    wanted = settings(environment)
    return {name: wanted.get(name) for name in sorted(wanted.keys() | FIRST.keys()) if wanted.get(name) != FIRST.get(name)}


FIRST = settings(os.environ)


def collected() -> None:
    """Take over what test modules have set in the environment while they were imported: no program has started yet."""
    global FIRST
    FIRST = settings(os.environ)


class Forked:
    """A forked program, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, starter: Starter, arguments: list[str], pid: int, stdout: IO[str] | None) -> None:
        self.args, self.pid, self.stdout = arguments, pid, stdout
        self.returncode: int | None = None
        self._starter = starter
        # The process cannot be gone: only the starter waits for it, when it is asked to.
        self._descriptor = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """Return the exit status (negative: the signal), or None while the process runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait up to `timeout` seconds; raises subprocess.TimeoutExpired."""
        found = self._look(timeout)
        if found is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return found

    def _look(self, seconds: float | None) -> int | None:
        if self.returncode is None and _readable(self._descriptor, seconds):
            with self._starter.lock:
                if self.returncode is None:
                    self.returncode = self._starter.status(self.pid)
                    os.close(self._descriptor)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _readable(descriptor: int, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


class Starter:
    """The process that forks programs, as this process sees it. It ends with this process."""

    def __init__(self, imports: Sequence[str]) -> None:
        self.lock = threading.RLock()
        self._owner = os.getpid()
        self._channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            words = [sys.executable, str(Path(__file__)), str(other.fileno()), *imports]
            self._process = subprocess.Popen(words, env=FIRST, pass_fds=(other.fileno(),))

    def close(self) -> None:
        """End it, and wait for that: what its programs cost counts as that of this process. A fork of this process has no say."""
        if os.getpid() != self._owner:
            return
        # A fork that a test has left behind keeps the channel open.
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._channel.close()
        self._process.wait()

    def _ask(self, question: dict[str, Any], descriptors: Sequence[int] = ()) -> int:
        answer = b""
        with self.lock, contextlib.suppress(ConnectionError):
            # A message of this kind holds some 200 KB, which the kernel bounds.
            socket.send_fds(self._channel, [json.dumps(question).encode()], list(descriptors))
            answer = self._channel.recv(64)
        if not answer:
            # Whoever sees this looks for the cause: 0 says that the channel was closed, by this process or by mistake.
            raise RuntimeError(f"the starter has ended with status {self._process.wait(10)}")
        return int(answer)

    def fork(
        self, words: Sequence[str], folder: Path, out: int, errors: int, variables: Mapping[str, str | None] | None = None
    ) -> int:
        """Fork a program, a module with its arguments; its number. `variables`: what differs in its environment."""
        variables = {**(variables or {}), OF_PYTEST: os.environ.get(OF_PYTEST)}
        return self._ask({"words": list(words), "folder": str(folder), "variables": variables}, (out, errors))

    def status(self, pid: int) -> int:
        """Return the status of a program that has ended, as `subprocess` counts it."""
        return self._ask({"ended": pid})


_starters: dict[tuple[int, tuple[str, ...]], Starter] = {}


def starter(imports: tuple[str, ...] = IMPORTED) -> Starter:
    """The one of this process for programs that need these modules."""
    key = (os.getpid(), imports)
    if key not in _starters:
        _starters[key] = Starter(imports)
        atexit.register(_starters[key].close)
    return _starters[key]


def start(
    module: str, arguments: Sequence[str], stdout: IO[Any] | int, stderr: IO[Any] | None = None,
    environment: Mapping[str, str] | None = None, imports: tuple[str, ...] = IMPORTED, folder: Path | None = None,
    read_late: Collection[str] = (),
) -> Forked | subprocess.Popen[str]:  # fmt: skip
    """Run `python -m module arguments` with this output: a file, or PIPE for one of text. No `stderr` or `folder`: those of this process.

    `read_late`: variables that the program reads when it needs them, beside those of READ_LATE.
    """
    wanted = dict(os.environ if environment is None else environment)
    variables = different(wanted)
    if not all(name.startswith(READ_LATE) or name in read_late for name in variables):
        words = [sys.executable, "-m", module, *arguments]
        return subprocess.Popen(words, stdout=stdout, stderr=stderr, env=wanted, cwd=folder, text=True)
    if isinstance(stdout, int):
        assert stdout == subprocess.PIPE
        read, write = os.pipe()
        piped: IO[str] | None = open(read)  # noqa: SIM115 (the process has it)
    else:
        write, piped = os.dup(stdout.fileno()), None
    try:
        told = 2 if stderr is None else stderr.fileno()
        pid = starter(imports).fork([module, *arguments], folder or Path.cwd(), write, told, variables)
    finally:
        os.close(write)
    return Forked(starter(imports), [module, *arguments], pid, piped)


def run(module: str, *arguments: str, folder: Path | None = None, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Run `python -m module arguments` to its end. It is killed, and TimeoutExpired raised, after `seconds`."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = start(module, arguments, out, errors, folder=folder)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        texts = []
        for file in (out, errors):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess([module, *arguments], status, *texts)


# -- the starter's side ------------------------------------------------------------------------------------------------------


def serve(channel: socket.socket) -> list[str]:
    """Fork what is asked for; returns in each child, with the words of its command line. Ends the process with the channel."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(channel, 1 << 18, 2)
        if not data:
            os._exit(0)
        question = json.loads(data)
        if "ended" in question:
            _, status = os.waitpid(question["ended"], 0)
            channel.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        pid = os.fork()
        if pid == 0:
            channel.close()
            for number, descriptor in enumerate(descriptors, 1):
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.chdir(question["folder"])
            for name, value in question["variables"].items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
            return list(question["words"])
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(str(pid).encode())


def main() -> None:
    # Only what an executed program would have: its folder, and no folder of tests.
    sys.path[0] = str(Path.cwd())
    gc.disable()     # imports create no garbage
    number, *imports = sys.argv[1:]
    for name in imports:
        importlib.import_module(name)
    # What is there is no garbage, and stays common to all.
    gc.freeze()
    module, *arguments = serve(socket.socket(fileno=int(number)))
    gc.enable()
    sys.path[0] = str(Path.cwd())
    sys.argv = [module, *arguments]
    status = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise       # words for standard error
        status = end.code or 0
    from headgate.server.ending import leave

    leave(status)


if __name__ == "__main__":
    main()
