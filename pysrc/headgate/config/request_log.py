"""`config.database` (and `config.logging.database`, its old name): where the request log is kept."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.extras import missing
from headgate.document.secret import Secret
from headgate.errors import Problem
from headgate.ir.request_log import MAX_BYTES, MAX_CONNECTIONS, MAX_RECORDS, RequestLogStore

POSTGRES: Final = ("postgres://", "postgresql://")
# What others append, and what is done anyhow: the file is made when it is missing.
MODES: Final = ("", "mode=rwc", "mode=rw")
TLS_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def request_log(context: Context, process: Record) -> RequestLogStore | None:
    """Return where the request log is kept, None without one. A relative file starts at the file's folder."""
    logging = process.get("logging")
    old = logging.get("database") if logging is not None else None
    record = old if old is not None else process.get("database")
    if record is None:
        if has_stored(process):
            context.fault(Problem.MISSING, process, "storage", "mode hybrid needs config.database.url")
        return None
    url = record["url"]
    assert isinstance(url, Secret)
    kept = record.get("retention") or Record(record.node, f"{record.path}.retention", {})
    age = kept.get("age")
    if age is not None and age <= 0:
        context.fault(Problem.VALUE, kept, "age", "must be longer than 0")
    stored = has_stored(process)
    if stored and old is not None:
        context.fault(Problem.CONFLICT, process, "logging", "with storage.mode hybrid write config.database instead")
    limits: dict[str, Any] = {
        "max_records": kept.get("records") or MAX_RECORDS,
        "max_bytes": kept.get("bytes") or MAX_BYTES,
        "max_age_ms": age,
    }
    if url.reveal().startswith(POSTGRES):
        return _postgres(context, record, url, limits | {"reserved": int(stored)})
    return _sqlite(context, record, url.reveal(), limits)


def has_stored(process: Record) -> bool:
    """Tell whether `config.storage` says that configuration is stored in the database as well."""
    storage = process.get("storage")
    return storage is not None and storage.get("mode") == "hybrid"


def _sqlite(context: Context, record: Record, text: str, limits: dict[str, Any]) -> RequestLogStore | None:
    if not text.startswith("sqlite:"):
        context.fault(Problem.VALUE, record, "url", "not sqlite://<file> or postgres://<server>/<database>")
        return None
    name, _, mode = text.removeprefix("sqlite:").removeprefix("//").partition("?")
    if not name or "\0" in name or name.startswith(":") or mode not in MODES:
        context.fault(Problem.VALUE, record, "url", "not sqlite://<file>: several processes open this file")
        return None
    path = str((context.folder / name).absolute())
    return RequestLogStore(path=path, shown=path, **limits)


def _postgres(context: Context, record: Record, url: Secret, limits: dict[str, Any]) -> RequestLogStore | None:
    message = missing("asyncpg")
    if message is not None:
        context.fault(Problem.ENVIRONMENT, record, "url", message)
        return None
    try:
        parts = urlsplit(url.reveal())
        place = parts.netloc.rpartition("@")[2]
        modes = parse_qs(parts.query).get("sslmode", [])
        # Servers are separated by commas.
        ports = [one.rpartition(":")[2] for one in place.split(",") if ":" in one.rpartition("]")[2]]
        good = not parts.fragment and all(port.isascii() and port.isdigit() and int(port) < 65536 for port in ports)
    except ValueError:
        good = False
    if not good:
        # The reason might hold a part of the password.
        reason = "not a URL of PostgreSQL: write characters of the password such as / # ? @ as %2F %23 %3F %40"
        context.fault(Problem.VALUE, record, "url", reason)
        return None
    if any(mode not in TLS_MODES for mode in modes):
        context.fault(Problem.VALUE, record, "url", f"sslmode is one of {', '.join(TLS_MODES)}")
        return None
    shown = f"{parts.scheme}://{place}{parts.path}"
    connections = record.get("maxConnections") or MAX_CONNECTIONS
    if connections <= limits["reserved"]:
        context.fault(Problem.VALUE, record, "maxConnections", "storage.mode hybrid needs at least 2")
        return None
    return RequestLogStore(url=url, shown=shown, max_connections=connections, **limits)
