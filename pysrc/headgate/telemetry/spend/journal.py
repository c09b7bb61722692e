"""What outlives a kill of a whole gateway: the memory with its spending is a file, which the next gateway reads.

The file lies in memory (`/dev/shm`) unless the configuration names a folder: stores into a file on a disk wait for that
disk now and then. Its owner holds a lock of it (flock(2)), which ends with the last process that has it open. So a file
that can be locked is that of a gateway that has ended. One of another boot of the machine is not read: the kernel may
have written a part of it only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import secrets
import stat
import time
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from headgate.telemetry.spend.rows import WRITER_DAYS
from headgate_engine.limit.account import ACCOUNT, SPEND
from headgate_engine.limit.spending import BATCHES, ORIGIN, batch_of, minute_of, uncarried
from headgate_engine.shared.kept import keep, lay_out_file
from headgate_engine.shared.segment import Segment

logger = logging.getLogger("headgate.spend")

FOLDER: Final = "/dev/shm"  # noqa: S108 (files are private)
PREFIX: Final = "headgate-spending-"
NAME_BYTES: Final = 8
OWNER_ONLY: Final = 0o600
OTHERS: Final = 0o007
# Bytes of a file: for what is made at run time, and for each key and team that is there at the start.
SPARE_BYTES: Final = 1 << 20
ACCOUNT_BYTES: Final = 2048
PAGE_BYTES: Final = 4096
# How many names of the folder a start looks at, and how many files of its user it opens.
MAX_ENTRIES: Final = 4096
MAX_FILES: Final = 64
BOOT: Final = "/proc/sys/kernel/random/boot_id"
UNCLAIMED: Final = "the last spending of an earlier gateway is lost: its file names no database"
UNREADABLE: Final = "the last spending of an earlier gateway cannot be read from its file"
Minute = tuple[int, tuple[int, int, int]]


class LedgerOrigin(NamedTuple):
    """Whose spending a file has: of which store, under which name that was told batches, and in which boot."""

    store: str
    writer: str
    boot: str

    def text(self) -> bytes:
        """Return the form that lies in the file."""
        return json.dumps(self).encode()


class LeftSpending(NamedTuple):
    """What a file has: whose it is (None: nobody has spent anything), the last batch, the slots of cells by their names
    (key, team, model, day), and what was used in a minute by accounts.
    """

    origin: LedgerOrigin | None
    batch: int
    cells: dict[tuple[str, str, str, str], bytes]
    minutes: dict[tuple[str, str], Minute]

    def unwritten(self) -> bool:
        """Tell whether it has amounts of which its gateway had not begun to write any."""
        with contextlib.suppress(ValueError):  # of a file that something else has written to
            return any(any(uncarried(value, self.batch)) for value in self.cells.values())
        return False


def boot() -> str:
    """Return what tells this boot of the machine from others."""
    try:
        return Path(BOOT).read_text().strip()
    except OSError:
        return ""


def begin(folder: str | None, accounts: int, segment: Segment) -> None:
    """Let the spending of a new gateway with so many keys and teams lie in a file. Raises OSError.

    Call this before other processes attach to the segment.
    """
    size = (SPARE_BYTES + ACCOUNT_BYTES * accounts + PAGE_BYTES - 1) // PAGE_BYTES * PAGE_BYTES
    path, file = _made(folder or FOLDER)
    try:
        # With all of its blocks: there is no other way to learn in time that a disk is full.
        os.posix_fallocate(file, 0, size)
        keep(segment, lay_out_file(file))
    except BaseException:
        os.close(file)
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise


def _made(place: str) -> tuple[str, int]:
    """Make a file that is locked. Return its path and descriptor. Raises OSError."""
    while True:
        path = os.path.join(place, PREFIX + secrets.token_hex(NAME_BYTES))
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, OWNER_ONLY)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.stat(path), os.fstat(file)):
                return path, file
        except (BlockingIOError, FileNotFoundError):
            pass  # another start has taken it for that of a dead gateway
        except OSError:
            os.close(file)
            os.unlink(path)
            raise
        os.close(file)


def is_claimed(segment: Segment) -> bool:
    """Tell whether a ledger has said that the spending in the file of this gateway is for it."""
    return segment.kept is not None and any(key.startswith(ORIGIN) for key, _, _ in segment.kept.entries())


def remove_own(segment: Segment) -> None:
    """Remove the file of this gateway, which has nothing that the next one needs."""
    if segment.kept is not None and segment.kept.fd >= 0:
        with contextlib.suppress(OSError):
            os.unlink(os.readlink(f"/proc/self/fd/{segment.kept.fd}"))


class Leftover:
    """The file of another gateway, which lives or has ended."""

    def __init__(self, path: str, segment: Segment) -> None:
        self.path = path
        # By account and start of the minute: what this gateway has taken over.
        self.known: dict[tuple[str, str, int], tuple[int, int, int]] = {}
        # What the ledger did not have of it was written.
        self.carried = False
        self._segment = segment

    def ended(self) -> bool:
        """Tell whether its gateway has ended. If so, no other one can take it up while this object has it open."""
        try:
            fcntl.flock(self._segment.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def read(self) -> LeftSpending:
        """Return what it has now."""
        origin, batch = None, 0
        cells: dict[tuple[str, str, str, str], bytes] = {}
        minutes: dict[tuple[str, str], Minute] = {}
        for key, _, value in self._segment.entries():
            with contextlib.suppress(ValueError, TypeError):  # of a file that something else has written to
                if key.startswith(SPEND):
                    name, team, model, day = json.loads(key[len(SPEND) :])
                    cells[name, team, model, day] = value
                elif key.startswith(ACCOUNT):
                    scope, name = json.loads(key[len(ACCOUNT) :])
                    minutes[scope, name] = minute_of(value)
                elif key == BATCHES:
                    batch = batch_of(value)
                elif key.startswith(ORIGIN):
                    origin = LedgerOrigin(*json.loads(key[len(ORIGIN) :]))
        return LeftSpending(origin, batch, cells, minutes)

    def useless(self, origin: LedgerOrigin) -> bool:
        """Tell whether nobody asks any more for the spending of a gateway that has ended."""
        # Of SQLite: path, device and number of the file.
        path, number = origin.store.rsplit(" ", 2)[0], origin.store.rpartition(" ")[2]
        if time.time() - os.fstat(self._segment.fd).st_mtime > WRITER_DAYS * 86400:
            return True
        if not path.startswith("/"):
            return False
        try:
            return str(os.stat(path).st_ino) != number
        except OSError:
            return True

    def remove(self) -> None:
        """Remove the file, and close it."""
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        self.close()

    def close(self) -> None:
        """Leave the file to others."""
        self._segment.close()


def leftovers(folder: str | None, own: Segment | None) -> list[Leftover]:
    """Return the files of other gateways of this user. own: the file of this one.

    Those of gateways that have ended without a ledger are removed.
    """
    found: list[Leftover] = []
    place = folder or FOLDER
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        names = (one.name for one in entries if one.name.startswith(PREFIX))
        for name in islice(names, MAX_ENTRIES):
            if len(found) == MAX_FILES:
                break
            one = _opened(os.path.join(place, name), own)
            if one is not None and not _removed(one):
                found.append(one)
    return found


def _removed(one: Leftover) -> bool:
    """Remove a file that no ledger has claimed and whose gateway has ended. Return whether it is one."""
    if not one.ended():
        return False
    left = one.read()
    if left.origin is not None:
        return False
    if left.unwritten():
        logger.warning(UNCLAIMED, extra={"file": one.path})
    one.remove()
    return True


def _opened(path: str, own: Segment | None) -> Leftover | None:
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        state = os.fstat(file)
        # A group may have rights: Kubernetes gives them to that of a volume (fsGroup).
        private = stat.S_ISREG(state.st_mode) and not state.st_mode & OTHERS and state.st_uid == os.geteuid()
        if private and (own is None or not os.path.samestat(state, os.fstat(own.fd))):
            if state.st_mode & 0o777 != OWNER_ONLY:
                os.fchmod(file, OWNER_ONLY)
            return Leftover(path, Segment.attach(file))
    except OSError as error:
        # Not for ever: no memory, say.
        logger.warning(UNREADABLE, extra={"file": path, "error": str(error)})
    except ValueError as error:
        # Of another version, or not laid out yet; that of a gateway that runs is locked.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
            if os.fstat(file).st_size:
                logger.warning(UNREADABLE, extra={"file": path, "error": str(error)})
    os.close(file)
    return None
