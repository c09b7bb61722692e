"""Atomic replacement of a file: readers see the old content or the new one, never a part of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from typing import Final

NEW_FILE_MODE: Final = 0o644


def replace_file(path: str, data: bytes, ready: Callable[[], None] | None = None, like: str | None = None) -> None:
    """Replace the content of `path` atomically. Raises OSError.

    A symbolic link is followed. Mode and owner are kept, or copied from the file `like`. `ready` is called when the new
    content is written to disk, just before the old file is replaced; if it raises, the old file stays.
    """
    real = os.path.realpath(path)
    descriptor, name = tempfile.mkstemp(dir=os.path.dirname(real), prefix=f".{os.path.basename(real)}.")
    try:
        with os.fdopen(descriptor, "wb") as new:
            new.write(data)
            _keep_mode(new.fileno(), like or real)
            new.flush()
            os.fsync(new.fileno())
        if ready is not None:
            ready()
        os.replace(name, real)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _keep_mode(descriptor: int, old: str) -> None:
    try:
        status = os.stat(old)
    except FileNotFoundError:
        os.fchmod(descriptor, NEW_FILE_MODE)
        return
    # Only root may change the owner, so otherwise a replaced file of another user belongs to the current user.
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, status.st_mode & 0o7777)
