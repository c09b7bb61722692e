"""Kernel notifications of file changes (inotify(7)). They shorten the wait until the files are checked.

Notifications can be missing: the files may be on a network file system, or the user may have no inotify watches left.
The caller therefore also polls the files.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final

# sys/inotify.h
MODIFY: Final = 0x2
ATTRIB: Final = 0x4
CLOSE_WRITE: Final = 0x8
MOVED_FROM: Final = 0x40
MOVED_TO: Final = 0x80
CREATE: Final = 0x100
DELETE: Final = 0x200
IGNORED: Final = 0x8000
OVERFLOW: Final = 0x4000
ONLY_FOLDERS: Final = 0x1000000
ALL: Final = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | ONLY_FOLDERS
_HEAD: Final = struct.Struct("iIII")
_BUFFER: Final = 65536
# As many links as the kernel follows (path_resolution(7)).
MAX_LINKS: Final = 40

Place = tuple[str, str]


def places(path: str) -> set[Place]:
    """Return folder and name of everything whose replacement leads the path elsewhere: of the file itself, and of each
    link on the way to it.
    """
    found: set[Place] = set()
    rest, at = list(PurePath(os.path.abspath(path)).parts[1:]), "/"
    links = 0
    while rest:
        name = rest.pop(0)
        if name == "..":
            at = os.path.dirname(at)
            continue
        here = os.path.join(at, name)
        try:
            target = os.readlink(here)
        except OSError:
            if not rest:
                found.add((at, name))
            at = here
            continue
        found.add((at, name))
        links += 1
        if links > MAX_LINKS:
            break
        if target.startswith("/"):
            at = "/"
        rest[:0] = [part for part in PurePath(target).parts if part != "/"]
    return found


class FileEvents:
    """Waits for notifications about some files. Without inotify, every wait lasts for its whole time."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._wanted: set[Place] = set()
        self._folders: dict[str, int] = {}
        self._by_watch: dict[int, str] = {}
        self._writing: set[Place] = set()
        self._came: asyncio.Event = asyncio.Event()
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError):
            return
        if self._descriptor >= 0:
            asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    @property
    def is_writing(self) -> bool:
        """Whether a process has written to one of the files and has not closed it yet."""
        return bool(self._writing)

    @property
    def works(self) -> bool:
        """Whether all folders are watched."""
        return self._descriptor >= 0 and all(folder in self._folders for folder, _ in self._wanted)

    def watch(self, paths: Iterable[str]) -> None:
        """Watch these files from now on, and no others."""
        self._wanted = set().union(*map(places, paths))
        self._writing &= self._wanted
        if self._descriptor < 0:
            return
        folders = {folder for folder, _ in self._wanted}
        for folder in self._folders.keys() - folders:
            watch = self._folders.pop(folder)
            del self._by_watch[watch]
            self._libc.inotify_rm_watch(self._descriptor, watch)
        for folder in folders - self._folders.keys():
            watch = self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), ALL)
            # Two names of one folder have one watch: the second one is looked at from time to time.
            if watch >= 0 and watch not in self._by_watch:
                self._folders[folder] = watch
                self._by_watch[watch] = folder

    async def wait(self, seconds: float) -> bool:
        """Wait for a notification, at most this many seconds. Return whether one came."""
        try:
            async with asyncio.timeout(seconds):
                await self._came.wait()
        except TimeoutError:
            return False
        self._came.clear()
        return True

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _BUFFER)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            watch, mask, _, size = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            name = os.fsdecode(data[at : at + size].rstrip(b"\0"))
            at += size
            self._take(watch, mask, name)

    def _take(self, watch: int, mask: int, name: str) -> None:
        if mask & OVERFLOW:
            self._writing.clear()
            self._came.set()
            return
        folder = self._by_watch.get(watch)
        if folder is None:
            return
        if mask & IGNORED:
            # The folder is gone; one that takes its name is watched from the next look on.
            del self._by_watch[watch], self._folders[folder]
            self._came.set()
            return
        place = (folder, name)
        if place in self._wanted:
            if mask & MODIFY:
                self._writing.add(place)
            else:
                self._writing.discard(place)
            self._came.set()

    def close(self) -> None:
        """Stop watching."""
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
