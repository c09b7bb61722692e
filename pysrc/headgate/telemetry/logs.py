"""Log lines as text or JSON, one write each.

Text: `<RFC 3339 time, microseconds, Z>` TAB level TAB scope, then the message and `key=value` fields. JSON: an object
with `level`, `time`, `scope`, `message` and the fields. Fields come from `extra=`; see rules on what may stand there.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from datetime import UTC, datetime

from headgate.telemetry.levels import TRACE, Directives

# Attributes every record has: what else it has came from `extra`.
STANDARD = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}
NEEDS_QUOTES = frozenset(' "\\')
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
    """Return a value for a text line: quoted when it needs it, never with a control character in it."""
    text = str(value)
    if text and not NEEDS_QUOTES.intersection(text) and text.isprintable():
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


class TextFormatter(logging.Formatter):
    """The text form."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback follows on lines of its own."""
        message = record.getMessage().replace("\n", "\\n")
        parts = [f"{_time(record)}\t{LEVEL_NAMES.get(record.levelno, 'info')}\t{record.name}\t{message}"]
        parts += [f"{key}={quoted(value)}" for key, value in _fields(record).items()]
        line = " ".join(parts)
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonFormatter(logging.Formatter):
    """The JSON form."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback is a field."""
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


class DescriptorHandler(logging.Handler):
    """Writes whole lines to a file descriptor, so that lines of several processes do not mix."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._write_lock = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; a reader that is gone loses it, the process goes on."""
        try:
            data = (self.format(record) + "\n").encode("utf-8", "replace")
            with self._write_lock:
                while data:
                    data = data[os.write(self._descriptor, data) :]
        except OSError:
            pass


def set_up(directives: Directives, form: str, descriptor: int | None = None) -> None:
    """Send the process's log to `descriptor` (standard output) as `text` or `json`."""
    handler = DescriptorHandler(sys.stdout.fileno() if descriptor is None else descriptor)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    directives.apply()
