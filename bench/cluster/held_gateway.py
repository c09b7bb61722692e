"""The gateway with a watch in its workers: for how long their loops are held.

Usage: HEADGATE_HOLDS=FOLDER python -m bench.cluster.held_gateway -f CONFIGURATION

A timer is due every millisecond; a loop that comes to it later was held meanwhile. Each worker writes the holds of LEAST_MS and more into a file of
the folder, with the CPU time of its loop since the timer before, and with how long it was ready to run while the kernel had something else on its
processor. The first is the gateway's own, the second the machine's. Unlike `bench.macro.timed_gateway` the loop sleeps, so others find their processor.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

VARIABLE: Final = "HEADGATE_HOLDS"
LEAST_MS: Final = 1.0
EVERY_S: Final = 0.001
FORM: Final = struct.Struct("dddd")


class Hold(NamedTuple):
    """`at`: when it ended, in seconds of time.monotonic(); the others in milliseconds."""

    at: float
    wall: float
    cpu: float
    delayed: float


class Watch:
    """Writes the holds of one loop into a file."""

    def __init__(self, loop: asyncio.AbstractEventLoop, file: BinaryIO) -> None:
        self._loop, self._file = loop, file
        self._scheduled = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self._delayed = self._delay_ns()
        self._last, self._ran = time.monotonic(), time.thread_time_ns()
        loop.call_later(EVERY_S, self._tick)

    def _delay_ns(self) -> int:
        return int(os.pread(self._scheduled, 64, 0).split()[1])

    def _tick(self) -> None:
        now, ran, delayed = time.monotonic(), time.thread_time_ns(), self._delay_ns()
        # libuv counts whole milliseconds, so that a timer may be one late.
        hold = Hold(now, (now - self._last - EVERY_S) * 1e3, (ran - self._ran) / 1e6, (delayed - self._delayed) / 1e6)
        if hold.wall >= LEAST_MS or hold.cpu >= LEAST_MS:
            self._file.write(FORM.pack(*hold))
            self._file.flush()
        self._last, self._ran, self._delayed = now, ran, delayed
        self._loop.call_later(EVERY_S, self._tick)


def holds(folder: Path, since: float) -> list[Hold]:
    """Return the holds that workers have written and that ended after a moment."""
    found = []
    for path in folder.glob("*.holds"):
        data = path.read_bytes()
        found += [Hold(*one) for one in FORM.iter_unpack(data[: len(data) - len(data) % FORM.size])]
    return [one for one in found if one.at >= since]


def told(folder: Path, since: float) -> str:
    """Return in words what there was after a moment."""
    found = holds(folder, since)
    if not found:
        return "the loop was never held for 1 ms"
    cpu, wall = max(found, key=lambda one: one.cpu), max(found, key=lambda one: one.wall)
    return (
        f"longest by CPU time {cpu.cpu:.1f} ms, by the clock {wall.wall:.1f} ms (CPU {wall.cpu:.1f}, waiting for the processor {wall.delayed:.1f} ms), "
        f"{sum(one.cpu > 5 for one in found)} over 5 ms of CPU"
    )


def main() -> int:
    from headgate.cli.main import main as headgate
    from headgate.server.worker import WorkerProcess

    folder, run = Path(os.environ[VARIABLE]), WorkerProcess.run

    async def watched(self: Any) -> None:
        with (folder / f"{os.getpid()}.holds").open("ab") as file:
            Watch(asyncio.get_running_loop(), file)
            await run(self)

    WorkerProcess.run = watched  # type: ignore[method-assign]
    return headgate(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
