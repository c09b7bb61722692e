"""Nothing that a stdio server started outlives the worker, even when the worker is killed.

The kernel ends the server itself (PR_SET_PDEATHSIG), not the processes that it started in turn: `npx` and `uvx` leave
the real server behind. One small process per worker therefore knows the process groups and kills them when the pipe to
the worker closes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

logger = logging.getLogger("headgate.mcp.stdio")

PROGRAM = Path(__file__).with_name("guard_process.py")
START_SECONDS = 10.0


class GroupGuard:
    """The pipe to the guarding process, which is started with the first group."""

    def __init__(self) -> None:
        self._pipe: int | None = None
        self._groups: set[int] = set()
        self._starting = threading.Lock()

    async def watch(self, group: int) -> None:
        """Have a process group killed when this process ends."""
        self._groups.add(group)
        if not self._tell(b"+%d\n" % group):
            await asyncio.to_thread(self._start)

    def release(self, group: int) -> None:
        """Take an ended group off the list: its number may come to mean another one."""
        self._groups.discard(group)
        self._tell(b"-%d\n" % group)

    def close(self) -> None:
        """End the guarding process; groups still on its list are killed."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            os.close(pipe)

    def _tell(self, line: bytes) -> bool:
        if self._pipe is None:
            return False
        try:
            os.write(self._pipe, line)
        except OSError:
            self.close()
            return False
        return True

    def _start(self) -> None:
        """Start the guarding process and tell it all groups; runs in a thread, as it waits for the fork."""
        with self._starting:
            if self._pipe is None:
                # Not inheritable: a server that held the pipe open would keep the guard waiting.
                reading, writing = os.pipe()
                try:
                    subprocess.run(
                        [sys.executable, "-I", "-S", str(PROGRAM)],
                        stdin=reading,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        start_new_session=True,
                        check=True,
                        timeout=START_SECONDS,
                        env={},
                    )
                except (OSError, subprocess.SubprocessError) as error:
                    os.close(writing)
                    logger.warning("no guard for child processes", extra={"error": str(error)})
                    return
                finally:
                    os.close(reading)
                self._pipe = writing
            for group in list(self._groups):
                self._tell(b"+%d\n" % group)
                if group not in self._groups:
                    self._tell(b"-%d\n" % group)


# One for the process, as its children are the process's.
GUARD = GroupGuard()
