"""Log lines as text or JSON. Each line is one write.

A text line has the time (RFC 3339, UTC with microseconds), the level and the scope, separated by tabs, then the message
and `key=value` fields. A JSON line is an object with `level`, `time`, `scope`, `message` and the fields. Fields come
from `extra=` of the logging call.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import select
import stat
import sys
import threading
from datetime import UTC, datetime

from headgate.telemetry.levels import TRACE, Directives

# The attributes of every record. All other attributes come from `extra`.
STANDARD = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}
NEEDS_QUOTES = frozenset(' "\\')
PATIENCE_MS = 100
LEVEL_NAMES = {
    TRACE: "trace",
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warn",
    logging.ERROR: "error",
    logging.CRITICAL: "error",
}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = {key: value for key, value in vars(record).items() if key not in STANDARD}
    if record.exc_info and record.exc_info[0] is not None:
        fields["error"] = f"{record.exc_info[0].__name__}: {record.exc_info[1]}"
    return fields


def quoted(value: object) -> str:
    """Return a value for a text line, quoted if necessary. Control characters are escaped."""
    text = str(value)
    if text and not NEEDS_QUOTES.intersection(text) and text.isprintable():
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


class TextFormatter(logging.Formatter):
    """Formats records as text lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record. A traceback follows in separate lines."""
        message = record.getMessage().replace("\n", "\\n")
        parts = [f"{_time(record)}\t{LEVEL_NAMES.get(record.levelno, 'info')}\t{record.name}\t{message}"]
        parts += [f"{key}={quoted(value)}" for key, value in _fields(record).items()]
        line = " ".join(parts)
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """Formats records as JSON lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record. A traceback is the field `traceback`."""
        document: dict[str, object] = {
            "level": LEVEL_NAMES.get(record.levelno, "info"),
            "time": _time(record),
            "scope": record.name,
            "message": record.getMessage(),
        }
        document |= _fields(record)
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return json.dumps(document, default=str)


@functools.cache
def output() -> int:
    """Return the descriptor for the log: standard output, non-blocking where possible.

    A pipe or terminal is opened anew with O_NONBLOCK, because setting the flag on the inherited descriptor would also
    affect the processes that share it. If that fails (a socket, the pipe of another user), standard output is used as
    it is.
    """
    descriptor = sys.stdout.fileno()
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        with contextlib.suppress(OSError):
            return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    return descriptor


class DescriptorHandler(logging.Handler):
    """Writes each line with one write to a file descriptor, so that lines of several processes do not mix."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._write_lock = threading.Lock()
        self._stalled = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record. The record is dropped if the reader is gone or does not keep up."""
        try:
            data = (self.format(record) + "\n").encode("utf-8", "replace")
            with self._write_lock:
                while data:
                    data = data[self._write(data) :]
            self._stalled = False
        except BlockingIOError:
            self._stalled = True
        except OSError:
            pass

    def _write(self, data: bytes) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            # A slow reader gets PATIENCE_MS, but only once while it is stalled: these lines are few and important.
            ready = select.poll()
            ready.register(self._descriptor, select.POLLOUT)
            if self._stalled or not ready.poll(PATIENCE_MS):
                raise
            return os.write(self._descriptor, data)


def set_up(directives: Directives, form: str, descriptor: int | None = None) -> None:
    """Write the log of the process to `descriptor` in the form `text` or `json`. None means standard output."""
    handler = DescriptorHandler(output() if descriptor is None else descriptor)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    directives.apply()
