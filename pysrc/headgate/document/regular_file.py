"""Opens files that a configuration names."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading. Raises OSError, also for what is no regular file.

    A FIFO without a writer would block whoever opens it, for ever; a device may never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            found = errno.EISDIR if stat.S_ISDIR(os.fstat(descriptor).st_mode) else errno.EINVAL
            raise OSError(found, os.strerror(found) if found == errno.EISDIR else "not a regular file", os.fspath(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | os.PathLike[str], most: int = -1) -> bytes:
    """Return the content of a regular file, at most `most` bytes of it if that is not negative. Raises OSError."""
    with open_regular(path) as file:
        return file.read(most)
