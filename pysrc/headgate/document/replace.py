"""Replacing a file at once: whoever reads or watches it sees the old text or the new one, never half of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from typing import Final

NEW_FILE_MODE: Final = 0o644


def replace_file(path: str, data: bytes, ready: Callable[[], None] | None = None, like: str | None = None) -> None:
    """Write `data` to `path`; a link stays one, and mode and owner of a file that is there are kept. Raises OSError.

    `like`: the file whose mode and owner it gets instead. `ready` is called when all is written but the old file is
    still in its place; what it raises leaves that there.
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
    # Only root may give files away; a file of another user that we may replace becomes ours.
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, status.st_mode & 0o7777)
