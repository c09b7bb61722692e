"""Names of forked processes, as `ps` and `top` show them: their command line is that of the supervisor otherwise."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path
from typing import Final

PR_SET_NAME: Final = 15
# Fields of /proc/self/stat behind the name of the program (proc_pid_stat(5)): field 3 is the first of them.
ARG_START: Final = 48 - 3
ARG_END: Final = 49 - 3


def set_title(name: str, title: str) -> None:
    """Set the name of this process (15 bytes) and, as far as there is room for it, its command line."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, ctypes.c_char_p(name.encode()), 0, 0, 0)
    with contextlib.suppress(OSError, IndexError, ValueError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, size = int(fields[ARG_START]), int(fields[ARG_END]) - int(fields[ARG_START])
        if start and size > 0:
            # The last byte stays NUL: the kernel takes what follows for more of the command line otherwise.
            text = title.encode()[: size - 1]
            ctypes.memmove(start, text + bytes(size - len(text)), size)
