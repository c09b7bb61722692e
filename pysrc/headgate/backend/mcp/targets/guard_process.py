"""Program of its own, run by path: kills process groups when the worker that started them is gone.

Reads `+<group>` and `-<group>` lines; at the end of input, which comes when the worker ends in whatever way, the groups
still on its list are killed. It forks once and leaves, so that the part that stays is nobody's child and ends alone.
"""

from __future__ import annotations

import os
import signal
import sys


def note(groups: set[int], line: bytes) -> None:
    """Put a group on the list or take it off; what is neither line is nothing."""
    sign, number = line[:1], line[1:].strip()
    if not number.isdigit() or int(number) <= 1:
        return
    if sign == b"+":
        groups.add(int(number))
    elif sign == b"-":
        groups.discard(int(number))


def main() -> None:
    """Leave a process behind that waits for the end of standard input."""
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
