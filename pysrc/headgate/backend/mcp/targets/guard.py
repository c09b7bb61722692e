"""Ensures that no process started by a stdio server outlives the worker, even if the worker is killed.

The kernel ends the server itself (PR_SET_PDEATHSIG), but not its child processes: `npx` and `uvx` start the real server
as a child. Therefore one small process per worker knows the process groups, and kills them when its pipe to the worker
closes.
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
    """The pipe to the guard process, which is started with the first group."""

    def __init__(self) -> None:
        self._pipe: int | None = None
        self._groups: set[int] = set()
        self._starting = threading.Lock()

    async def watch(self, group: int) -> None:
        """Register a process group, which is killed when this process ends."""
        self._groups.add(group)
        if not self._tell(b"+%d\n" % group):
            await asyncio.to_thread(self._start)

    def release(self, group: int) -> None:
        """Unregister a group that has ended: its number may be reused."""
        self._groups.discard(group)
        self._tell(b"-%d\n" % group)

    def close(self) -> None:
        """End the guard process; groups that are still registered are killed."""
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
        """Start the guard process and send it all groups. Runs in a thread, because it blocks."""
        with self._starting:
            if self._pipe is None:
                # os.pipe() is not inheritable: a server with a copy of the write end would keep the guard alive.
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


# One guard for the process, which is the parent of all servers.
GUARD = GroupGuard()
