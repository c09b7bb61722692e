"""Detection of changes in configuration files.

Files are polled four times a second with a few stat() calls. Polling detects editors that replace a file, switched
symlinks (mounted ConfigMaps) and changes on network file systems. With kernel notifications (`file_events`), files are
checked as soon as one is closed or replaced.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final

from headgate.server.file_events import FileEvents

DEBOUNCE_SECONDS: Final = 0.25
# How long a file rests that was closed or replaced before it is read.
SETTLE_SECONDS: Final = 0.002
MISSING: Final = (0, 0, 0, 0)

Fingerprint = tuple[tuple[str, str, int, int, int, int], ...]


def fingerprint(paths: Iterable[str]) -> Fingerprint:
    """Return a value that identifies the current state of the files. A missing file is a state, too."""
    found = []
    for path in sorted(set(paths)):
        real = os.path.realpath(path)
        try:
            status = os.stat(real)
        except OSError:
            found.append((path, real, *MISSING))
        else:
            # The time of the last change cannot be set back, unlike that of the last modification.
            found.append((path, real, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return tuple(found)


async def changes(
    paths: Callable[[], Iterable[str]], interval_s: float = DEBOUNCE_SECONDS, start: Fingerprint | None = None
) -> AsyncIterator[None]:
    """Yield after every change, once the files have not changed for one interval.

    `paths` is called each time: a new configuration may name other files. The first of them is the configuration: when
    it alone has changed, was closed or replaced, and nothing has changed an interval before, that is yielded at once.
    """
    known = fingerprint(paths()) if start is None else start
    loop = asyncio.get_running_loop()
    events = FileEvents()
    last = loop.time() - interval_s
    watched: list[str] = []
    # Whether a link may lead elsewhere than at the last look.
    moved = True
    try:
        while True:
            names = list(paths())
            if moved or names != watched:
                events.watch(names)
                watched = names
            current = fingerprint(names)
            if current == known:
                moved = await events.wait(interval_s)
                continue
            moved = True
            settled = None
            if loop.time() - last >= interval_s and events.works and _is_whole(known, current, names):
                settled = await _closed(events, names, loop.time() + interval_s)
            if settled is None or not _is_whole(known, settled, names):
                settled = None
                while settled != current:
                    await asyncio.sleep(interval_s)
                    settled, current = current, fingerprint(paths())
            known = settled
            yield
            last = loop.time()
    finally:
        events.close()


def _is_whole(known: Fingerprint, current: Fingerprint, names: list[str]) -> bool:
    """Tell whether only the first of the files has changed, and is there."""
    before, after = ({one[0]: one[1:] for one in files} for files in (known, current))
    changed = {name for name in after if before.get(name) != after[name]}
    return changed == {names[0]} and after[names[0]][1:] != MISSING


async def _closed(events: FileEvents, names: list[str], end: float) -> Fingerprint | None:
    """Return the state of the files once no process writes to them, after a short pause. Returns None if that does not
    happen in time."""
    current = None
    while asyncio.get_running_loop().time() < end:
        await asyncio.sleep(SETTLE_SECONDS)
        before, current = current, fingerprint(names)
        if before == current and not events.is_writing:
            return current
    return None
