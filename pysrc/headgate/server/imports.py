"""Imports modules in a worker that serves traffic: in a thread, and one module in a turn of the loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Final

from headgate.server.template import import_all

# How long the thread may keep the loop from going on, each time that the loop has let go of the interpreter: several
# times a turn, around its system calls.
IMPORT_SECONDS: Final = 0.0005
# How long the loop serves its connections before the thread gets its next module.
PAUSE_SECONDS: Final = 0.001
# How long the thread waits for a permit: a loop that gives none may itself wait for a module that the thread has begun.
WAIT_SECONDS: Final = 0.01


async def import_beside(modules: tuple[str, ...]) -> None:
    """Import modules and what they import. Ignores failures: a failing module is imported again where it is needed, and
    reported there.
    """
    missing = tuple(name for name in modules if name not in sys.modules)
    if not missing:
        return
    interval = sys.getswitchinterval()
    sys.setswitchinterval(IMPORT_SECONDS)
    permits = ImportPermits()
    try:
        imported = asyncio.get_running_loop().run_in_executor(None, _import_with_permits, missing, permits)
        while not imported.done():
            permits.give()
            await asyncio.wait([imported], timeout=PAUSE_SECONDS)
        imported.result()
    finally:
        permits.give_all()
        sys.setswitchinterval(interval)


class ImportPermits:
    """A finder of modules (`sys.meta_path`) that has one thread wait for a permit before each module.

    What a module does when it is loaded (reading its code, setting up an extension) may hold the interpreter for
    2 ms at a time. With a permit in each turn of the loop, no turn meets two such modules.
    """

    def __init__(self) -> None:
        self._given = threading.Event()
        self._all = False
        self._thread = 0

    def begin(self) -> None:
        """Let the calling thread be the one that waits."""
        self._thread = threading.get_ident()

    def give(self) -> None:
        """Let the thread load one module, if it waits. A permit for a thread that is busy is lost."""
        self._given.set()

    def give_all(self) -> None:
        """Let the thread load all that is left without waiting: nobody gives permits any more."""
        self._all = True
        self._given.set()

    def find_spec(self, fullname: str, path: object, target: object = None, /) -> None:
        """Find nothing: the finders behind this one do."""
        if threading.get_ident() != self._thread:
            return
        self._given.clear()
        if not self._all:
            self._given.wait(WAIT_SECONDS)


def _import_with_permits(modules: tuple[str, ...], permits: ImportPermits) -> None:
    permits.begin()
    sys.meta_path.insert(0, permits)
    try:
        import_all(modules)
    finally:
        sys.meta_path.remove(permits)
