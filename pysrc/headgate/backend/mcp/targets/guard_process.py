"""A program that is run by its path: it kills process groups when the worker that started them has ended.

It reads lines `+<group>` and `-<group>`. At the end of input, however the worker ended, it kills the groups that
remain. It forks once and its parent exits, so that the remaining process is no child of the worker.
"""

from __future__ import annotations

import os
import signal
import sys


def note(groups: set[int], line: bytes) -> None:
    """Add a group to the set or remove it; other lines are ignored."""
    sign, number = line[:1], line[1:].strip()
    if not number.isdigit() or int(number) <= 1:
        return
    if sign == b"+":
        groups.add(int(number))
    elif sign == b"-":
        groups.discard(int(number))


def main() -> None:
    """Start a background process that waits for the end of standard input."""
    if os.fork():
        os._exit(0)
    os.setsid()
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sig, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin.buffer:
        note(groups, line)
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            continue


if __name__ == "__main__":
    main()
