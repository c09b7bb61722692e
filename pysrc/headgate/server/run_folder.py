"""The folder of a running gateway, with the sockets over which its processes reach each other.

A gateway that is killed cannot remove its folder; the next one that starts does. Whether the owner of a folder lives,
its lock says (flock(2)), which ends with the last process that holds it: process ids would say nothing where several
containers share the place.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from itertools import islice
from typing import Final

# In memory, and writable where the root of a container is not.
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 (the folder is private)
PREFIX: Final = "headgate-run-"
NAME_BYTES: Final = 8
# At the end of the name of a folder that could not be locked: no start takes it for that of a dead gateway.
UNLOCKED: Final = "-unlocked"
# Bytes of the longest path of a socket (unix(7), without the NUL), and of a name in the folder, with a slash.
MAX_PATH: Final = 107
MAX_NAME: Final = 24
# How many entries of the place a start looks at (10 ms at most, if all have such a name), and how many folders of its
# user it opens (1 ms).
MAX_ENTRIES: Final = 4096
MAX_FOLDERS: Final = 64
OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RunFolder:
    """A folder that only this user can enter, locked by the open descriptor `lock` for as long as a process has it."""

    def __init__(self, path: str, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls) -> RunFolder:
        """Create one in the first place that is writable and whose path is not too long for a socket's, and remove
        those of gateways that are dead there. Raises OSError.
        """
        # As tempfile.mkdtemp(), which takes a while to load.
        configured = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
        failure: OSError | None = None
        for place in (*configured, "/tmp", "/var/tmp", SHARED_MEMORY):  # noqa: S108 (the folder is private)
            if place:
                try:
                    found = cls._in(os.path.abspath(place))
                except OSError as error:
                    failure = failure or error
                else:
                    remove_dead(os.path.abspath(place))
                    return found
        assert failure is not None
        raise failure

    @classmethod
    def _in(cls, place: str) -> RunFolder:
        while True:
            path = os.path.join(place, PREFIX + secrets.token_hex(NAME_BYTES))
            if len(os.fsencode(path + UNLOCKED)) > MAX_PATH - MAX_NAME:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
            os.mkdir(path, 0o700)
            try:
                lock = os.open(path, OPEN)
            except FileNotFoundError:
                continue  # another start has taken it for that of a dead gateway
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.stat(path), os.fstat(lock)):
                    return cls(path, lock)
            except (BlockingIOError, FileNotFoundError):
                os.close(lock)  # as above
            except OSError:
                # A file system without locks, or a kernel that has none left now and may have some for the next start.
                try:
                    os.rename(path, path + UNLOCKED)
                except FileNotFoundError:
                    os.close(lock)  # as above
                else:
                    return cls(path + UNLOCKED, lock)
            else:
                os.close(lock)

    def remove(self) -> None:
        """Remove it with what is in it; further calls do nothing."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            _remove(self.path, lock)
            os.close(lock)


def remove_dead(place: str) -> None:
    """Remove the folders of gateways of this user that have ended without doing so."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        # Those of others do not count: somebody else's thousand would keep ours for ever.
        ours = (entry.path for entry in islice(entries, MAX_ENTRIES) if _is_name(entry.name) and _is_ours(entry))
        for path in islice(ours, MAX_FOLDERS):
            with contextlib.suppress(OSError):
                _remove_if_dead(path)


def _is_name(name: str) -> bool:
    tail = name.removeprefix(PREFIX)
    return tail != name and len(tail) == 2 * NAME_BYTES and set(tail) <= set("0123456789abcdef")


def _is_ours(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    except OSError:
        return False  # it is gone


def _remove_if_dead(path: str) -> None:
    lock = os.open(path, OPEN)
    try:
        found = os.fstat(lock)
        if found.st_uid != os.geteuid() or found.st_mode & 0o777 != 0o700:
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its gateway lives
        _remove(path, lock)
    finally:
        os.close(lock)


def _remove(path: str, folder: int) -> None:
    """Remove the sockets in an open folder, and then the folder. Anything else that somebody has put there stays."""
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # a worker that ends removes its own
            if stat.S_ISSOCK(os.lstat(name, dir_fd=folder).st_mode):
                os.unlink(name, dir_fd=folder)
    with contextlib.suppress(OSError):
        os.rmdir(path)
