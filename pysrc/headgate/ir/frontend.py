"""How client connections are treated, and what the access log holds."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLog:
    """`remove` are the keys left out of every record (at most 32), `add` pairs of key and expression. `filter`: an
    expression that says which requests have a record. `database_add`: what the request log has beside that;
    `database_full`: also prompts and answers of models.
    """

    remove: tuple[str, ...] = ()
    add: tuple[tuple[str, str], ...] = ()
    filter: str | None = None
    database_add: tuple[tuple[str, str], ...] = ()
    database_full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontend:
    """`max_buffer_bytes` bounds every body that must be held whole.

    `http1_idle_timeout_ms` covers the idle time between requests and the time a head may take.
    `http1_max_headers` None means the codec's default. After `max_connection_duration_ms` a connection is
    closed when the running request ends; None means never.
    """

    max_buffer_bytes: int = 2_097_152
    http1_idle_timeout_ms: int = 600_000
    http1_max_headers: int | None = None
    max_connection_duration_ms: int | None = None
    tls_handshake_timeout_ms: int = 15_000
    access_log: AccessLog = AccessLog()
