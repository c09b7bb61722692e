"""`headgate oneshot -- COMMAND`: run a gateway while a command runs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence

from headgate.server.template import OF_THE_SUPERVISOR

FAILED = 1
NOT_FOUND = 127


def run(gateway: Sequence[str], command: Sequence[str], output: str | None) -> int:
    """Start a gateway with the arguments `gateway`, wait until it is ready, and replace this process by `command`.

    The gateway ends with the command. `output` is the file for the gateway's log; None means standard error. Returns an
    exit status only if something fails.
    """
    if not command:
        print("headgate: oneshot needs a command after --", file=sys.stderr)
        return 2
    reading, writing = os.pipe()
    with contextlib.ExitStack() as stack:
        try:
            log = sys.stderr.fileno() if output is None else stack.enter_context(open(output, "ab")).fileno()
        except OSError as error:
            print(f"headgate: cannot write {output}: {error.strerror}", file=sys.stderr)
            return FAILED
        # A service manager has started the command, and not the gateway beside it.
        environ = {name: value for name, value in os.environ.items() if name not in OF_THE_SUPERVISOR}
        child = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *gateway],
            stdin=None if "-" in gateway else subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writing,),
            env={**environ, "READY_FD": str(writing), "HEADGATE_PARENT": str(os.getpid())},
        )
        os.close(writing)
    with open(reading, "rb") as pipe:
        if not pipe.read():
            return child.wait() or FAILED
    try:
        os.execvp(command[0], list(command))  # noqa: S606 - the user typed this command
    except OSError as error:
        print(f"headgate: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        child.terminate()
        child.wait()
        return NOT_FOUND
