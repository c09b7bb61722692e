"""A child process that `subprocess` did not start: a forked template, or a worker that the supervisor adopted."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Final

POLL_SECONDS: Final = 0.001
# How long the kernel may take to end a process that was killed.
KILL_SECONDS: Final = 5.0


class ChildProcess:
    """One child of this process. `returncode`: its exit status, minus the signal that killed it; None while it runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status; None while the process runs. Reaps it."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else has waited for it
                self.returncode = -signal.SIGKILL
            else:
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, seconds: float) -> int | None:
        """Return the exit status as soon as there is one; None when the process still runs after that time."""
        deadline = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return self.returncode

    def send_kill(self) -> None:
        """Have the kernel end the process. One that waits for a disk or the like ends later."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the process at once, and reap it. One that waits for a disk or the like ends later."""
        if self.poll() is None:
            self.send_kill()
            self.wait(KILL_SECONDS)
