"""`config.database` (and `config.logging.database`, its old name) to the file of the request log."""

from __future__ import annotations

from typing import Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.document.secret import Secret
from headgate.errors import Problem

POSTGRES: Final = ("postgres://", "postgresql://")
# What others append, and what is done anyhow: the file is made when it is missing.
MODES: Final = ("", "mode=rwc", "mode=rw")


def request_log(context: Context, process: Record) -> str | None:
    """Return the absolute path of the database, None without one; a relative one starts at the file's folder."""
    logging = process.get("logging")
    old = logging.get("database") if logging is not None else None
    record = old if old is not None else process.get("database")
    if record is None:
        return None
    url = record["url"]
    assert isinstance(url, Secret)
    text = url.reveal()
    if text.startswith(POSTGRES):
        context.fault(Problem.UNSUPPORTED, record, "url", " (PostgreSQL)")
        return None
    if not text.startswith("sqlite:"):
        context.fault(Problem.VALUE, record, "url", "not sqlite://<file>")
        return None
    name, _, mode = text.removeprefix("sqlite:").removeprefix("//").partition("?")
    if not name or "\0" in name or name.startswith(":") or mode not in MODES:
        context.fault(Problem.VALUE, record, "url", "not sqlite://<file>: a file that several processes open")
        return None
    return str((context.folder / name).absolute())
