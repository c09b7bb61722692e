"""`headgate oneshot -- COMMAND`: a gateway for as long as a command runs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence

FAILED = 1
NOT_FOUND = 127


def run(gateway: Sequence[str], command: Sequence[str], output: str | None) -> int:
    """Start a gateway with these arguments, wait until it serves, and become the command; the gateway ends with it.

    `output`: where its log goes instead of standard error. Returns only if something fails.
    """
    if not command:
        print("headgate: oneshot needs a command behind --", file=sys.stderr)
        return 2
    reading, writing = os.pipe()
    with contextlib.ExitStack() as stack:
        try:
            log = sys.stderr.fileno() if output is None else stack.enter_context(open(output, "ab")).fileno()
        except OSError as error:
            print(f"headgate: cannot write {output}: {error.strerror}", file=sys.stderr)
            return FAILED
        child = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *gateway],
            stdin=None if "-" in gateway else subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writing,),
            env={**os.environ, "READY_FD": str(writing), "HEADGATE_PARENT": str(os.getpid())},
        )
        os.close(writing)
    with open(reading, "rb") as pipe:
        if not pipe.read():
            return child.wait() or FAILED
    try:
        os.execvp(command[0], list(command))  # noqa: S606 - what the user typed
    except OSError as error:
        print(f"headgate: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        child.terminate()
        child.wait()
        return NOT_FOUND
