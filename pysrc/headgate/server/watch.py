"""Noticing that configuration files changed.

Files are looked at four times a second: that sees editors that replace a file, symlinks that are switched (mounted
configuration maps) and network file systems alike, for the price of a few stat() calls.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable

DEBOUNCE_SECONDS = 0.25

Fingerprint = tuple[tuple[str, str, int, int, int], ...]


def fingerprint(paths: Iterable[str]) -> Fingerprint:
    """Return what identifies the present state of the files; a missing file is a state, too."""
    found = []
    for path in sorted(set(paths)):
        real = os.path.realpath(path)
        try:
            status = os.stat(real)
        except OSError:
            found.append((path, real, 0, 0, 0))
        else:
            found.append((path, real, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


async def changes(
    paths: Callable[[], Iterable[str]], interval_s: float = DEBOUNCE_SECONDS, start: Fingerprint | None = None
) -> AsyncIterator[None]:
    """Yield after every change, once the files have been at rest for one interval.

    `paths` is asked each time: a new configuration may name other files.
    """
    known = fingerprint(paths()) if start is None else start
    while True:
        await asyncio.sleep(interval_s)
        current = fingerprint(paths())
        if current == known:
            continue
        while True:
            await asyncio.sleep(interval_s)
            settled = fingerprint(paths())
            if settled == current:
                break
            current = settled
        known = current
        yield
