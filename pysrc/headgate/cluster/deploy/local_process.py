"""One `headgate` process of this machine: started, watched, ended, or found again after the controller's own end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

# Seconds that a process has for its end before it is killed.
END_SECONDS: Final = 30.0
RECORD: Final = "process.json"
LOG: Final = "log.txt"
# What was in the log before, or what the process before this one wrote.
OLDER_LOG: Final = "log.1.txt"
# Bytes of a log that are kept; the older part has as many at most, and what is written until it is looked at again.
LOG_BYTES: Final = 16 << 20
# What of a log is looked at for its last line, and what is told of that.
_TAIL_BYTES: Final = 8192
_LINE_CHARACTERS: Final = 500


class LocalProcess:
    """A process that this one has started or found. `digest`: of what it was started with. `ended` is called once."""

    def __init__(self, pid: int, digest: str, child: subprocess.Popen[bytes] | None, ended: Callable[[], None]) -> None:
        """Raises ProcessLookupError if there is no such process."""
        self.pid = pid
        self.digest = digest
        self._child = child
        self._ended = ended
        self._gone = asyncio.Event()
        self._handle = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._handle, self._end)

    async def end(self) -> None:
        """Have the process drain and end; it is killed after half a minute."""
        self._ended = _nothing
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._gone.wait(), END_SECONDS)
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._gone.wait()

    def _signal(self, number: int) -> None:
        if not self._gone.is_set():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        if self._child is not None:
            self._child.wait()
        self._gone.set()
        self._ended()


def _nothing() -> None:
    pass


def start(
    folder: Path, configuration: Path, environment: Mapping[str, str], digest: str, ended: Callable[[], None]
) -> LocalProcess:
    """Start a gateway with a configuration file; its log is a file of the folder. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.replace(folder / LOG, folder / OLDER_LOG)
    with open(folder / LOG, "wb", buffering=0, opener=_private) as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "-f", str(configuration)],
            env=dict(environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True,
        )  # fmt: skip
    record = {"pid": child.pid, "started": _started(child.pid), "digest": digest}
    with open(folder / RECORD, "w", encoding="utf-8", opener=_private) as file:
        file.write(json.dumps(record))
    return LocalProcess(child.pid, digest, child, ended)


def last_line(folder: Path) -> str:
    """Return the last line of a log, without its end if it is long; "" if there is none."""
    try:
        with open(folder / LOG, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line[:_LINE_CHARACTERS] for line in reversed(lines) if line.strip()), "")


def bound_log(folder: Path, most: int = LOG_BYTES) -> None:
    """Set a log aside that has become too long, in the place of what was set aside before.

    The process goes on writing into the same file, at its end (O_APPEND). What it writes between the copy and the cut
    is lost. Takes a while for long files. Raises OSError.
    """
    file, older = folder / LOG, folder / OLDER_LOG
    with contextlib.suppress(FileNotFoundError):
        size = file.stat().st_size
        if size <= most:
            return
        with open(file, "rb") as origin, open(older, "wb", opener=_private) as copy:
            origin.seek(size - most)
            shutil.copyfileobj(origin, copy)
        os.truncate(file, 0)


def found_again(folder: Path, ended: Callable[[], None]) -> LocalProcess | None:
    """Return the process that an earlier life of the controller has started, None if it does not run any more."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        pid = int(record["pid"])
        # A number may have been given to another process since.
        if _started(pid) == record["started"]:
            return LocalProcess(pid, str(record["digest"]), None, ended)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _started(pid: int) -> str:
    """Return when a process has started, in clock ticks since the machine did (proc(5)). Raises OSError."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return stat.rpartition(")")[2].split()[19]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_APPEND | os.O_TRUNC, 0o600)
