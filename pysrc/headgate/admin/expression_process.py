"""Evaluation of expressions that an operator tries (`POST /api/cel`), in a process with limits.

An expression of a request has a budget of steps, which says little about the memory and time that the compiler, the
data and the result take. Here each evaluation gets a process of its own, which the kernel ends at a limit of CPU time
or memory (setrlimit(2)), and the supervisor at a limit of time. The supervisor's event loop only waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from typing import Any, Final

CPU_SECONDS: Final = 2
MEMORY_BYTES: Final = 512 << 20
WALL_SECONDS: Final = 10.0
# The longest response document, in bytes.
MAX_RESULT: Final = 4 << 20
# Evaluations that wait for the one under way.
MAX_WAITING: Final = 4
_READ_SIZE: Final = 1 << 16
# The child gets no other variables: the gateway's environment has secrets.
_ENVIRONMENT: Final = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "PYTHONMALLOC")
_STOPPED: Final[dict[int, str]] = {
    signal.SIGXCPU: f"the evaluation takes more than {CPU_SECONDS} s of CPU time",
    signal.SIGKILL: "the evaluation was killed",
}


class ExpressionEvaluations:
    """Evaluates one expression at a time. At most MAX_WAITING others wait; more are refused with status 429."""

    def __init__(self, wall_seconds: float = WALL_SECONDS) -> None:
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._wall_seconds = wall_seconds

    async def evaluate(self, body: bytes, functions: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the response document for a body `{"expression": ..., "data": {...}}`.

        `functions` is the text of the custom functions. An evaluation that exceeds a limit is an evaluation without
        a value: status 200 with `error`.
        """
        if self._waiting > MAX_WAITING:
            return 429, _failed(f"{self._waiting} evaluations are in progress")
        self._waiting += 1
        try:
            async with self._lock:
                return await self._evaluate(body, functions)
        finally:
            self._waiting -= 1

    async def _evaluate(self, body: bytes, functions: str) -> tuple[int, dict[str, Any]]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", __name__,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        )  # fmt: skip
        try:
            async with asyncio.timeout(self._wall_seconds):
                text = await _exchange(process, functions.encode() + b"\0" + body)
                status = await process.wait()
        except TimeoutError:
            return 200, _failed(f"the evaluation takes more than {self._wall_seconds:g} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            # asyncio reports the end once the pipes are at their ends, so output that nobody wants is read, too.
            await process.communicate()
        if len(text) > MAX_RESULT:
            return 200, _failed(f"the result is longer than {MAX_RESULT} bytes")
        if status:
            return 200, _failed(_STOPPED.get(-status, f"the evaluation ended with status {status}"))
        code, document = json.loads(text)
        return code, document


async def _exchange(process: asyncio.subprocess.Process, data: bytes) -> bytes:
    """Send `data` to a process. Return its output, of a longer one MAX_RESULT bytes and a few more.

    A process whose output is longer is killed.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(data)
    with contextlib.suppress(ConnectionError):  # a process that has ended tells by its status
        await process.stdin.drain()
    process.stdin.close()
    found = bytearray()
    while len(found) <= MAX_RESULT:
        piece = await process.stdout.read(_READ_SIZE)
        if not piece:
            break
        found += piece
    if len(found) > MAX_RESULT:
        process.kill()
        while await process.stdout.read(_READ_SIZE):  # `process.wait` returns once the pipe is at its end
            pass
    return bytes(found)


def _failed(why: str) -> dict[str, Any]:
    return {"result": None, "error": why}


def main() -> None:
    """Evaluate the expression on standard input and write `[status, document]` to standard output."""
    import resource

    # The compiler is large, and only this process needs it.
    from headgate.admin.expressions import try_expression
    from headgate.expr.custom import parse_functions

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (0, 0))
    functions, _, body = sys.stdin.buffer.read().partition(b"\0")
    try:
        answer = json.dumps(try_expression(body, parse_functions(functions.decode())))
    except MemoryError:
        answer = json.dumps((200, _failed(f"the evaluation takes more than {MEMORY_BYTES >> 20} MiB of memory")))
    sys.stdout.write(answer)


if __name__ == "__main__":
    main()
