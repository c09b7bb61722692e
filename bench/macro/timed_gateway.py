"""The gateway with a timer in its workers: how long each turn of their loops takes, by the CPU time of the process.

Usage: HEADGATE_TURNS=FOLDER python -m bench.macro.timed_gateway -f CONFIGURATION

A turn is all that a loop does between two looks at its sockets, and what it takes is what a request that comes in the
meantime waits for. The clock is that of the process: it counts threads that hold the interpreter meanwhile, and does not
count other programs of the machine. Each worker writes its turns of LEAST_NS and more into a file of the folder, as pairs
of numbers (`turns`). The timer asks for a turn again at once, so a worker never sleeps.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

LEAST_NS: Final = 200_000
VARIABLE: Final = "HEADGATE_TURNS"
PAIR: Final = struct.Struct("dd")


class Turn(NamedTuple):
    """`at`: when it ended, by time.perf_counter(), which all processes share; `ms`: CPU time."""

    at: float
    ms: float


class TurnTimer:
    """Writes the long turns of one loop into a file."""

    def __init__(self, loop: asyncio.AbstractEventLoop, file: BinaryIO) -> None:
        self._loop = loop
        self._file = file
        self._last = time.process_time_ns()
        loop.call_soon(self._turn)

    def _turn(self) -> None:
        used = time.process_time_ns() - self._last
        if used >= LEAST_NS:
            self._file.write(PAIR.pack(time.perf_counter(), used / 1e6))
            self._file.flush()
        self._loop.call_soon(self._turn)
        self._last = time.process_time_ns()


def turns(folder: Path, since: float = 0.0) -> list[Turn]:
    """Return the turns that workers have written and that ended after a moment."""
    found = [Turn(*pair) for path in folder.glob("*.turns") for pair in PAIR.iter_unpack(whole(path))]
    return sorted(turn for turn in found if turn.at >= since)


def whole(path: Path) -> bytes:
    """Return the whole pairs of a file that is being written."""
    data = path.read_bytes()
    return data[: len(data) - len(data) % PAIR.size]


def main() -> int:
    from headgate.cli.main import main as headgate
    from headgate.server.worker import WorkerProcess

    folder, run = Path(os.environ[VARIABLE]), WorkerProcess.run

    async def timed(self: Any) -> None:
        with (folder / f"{os.getpid()}.turns").open("ab") as file:
            TurnTimer(asyncio.get_running_loop(), file)
            await run(self)

    WorkerProcess.run = timed  # type: ignore[method-assign]
    return headgate(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
