"""Settings of client connections and of the access log."""

from __future__ import annotations

from typing import Final, Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Keepalives
from headgate.ir.policy.authorization import Authorization
from headgate.ir.policy.ext_authz import ExtAuthz
from headgate.ir.telemetry import OtlpLog, OtlpMetrics, Tracing

# Of a model's response: pictures and sound in base64 take megabytes.
MAX_MODEL_RESPONSE_BYTES: Final = 33_554_432
# Of a client that neither sends what it owes nor takes what waits for it.
STALL_TIMEOUT_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLog:
    """Settings of the access log and of the request log.

    `remove` are keys that are left out of every record (at most 32), `add` are additional (key, expression) pairs.
    `filter` is an expression that selects the requests to log. `database_add` are additional pairs for the request log
    only; with `database_full` it also stores the prompts and completions of models. `otlp`: the collector that gets
    every request as a log record.
    """

    remove: tuple[str, ...] = ()
    add: tuple[tuple[str, str], ...] = ()
    filter: str | None = None
    database_add: tuple[tuple[str, str], ...] = ()
    database_full: bool = False
    otlp: OtlpLog | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyProtocol:
    """What is accepted of PROXY protocol headers. With `strict`, a connection without one ends."""

    version: Literal["v1", "v2", "all"] = "v2"
    strict: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontend:
    """Settings of client connections. `max_buffer_bytes` bounds every body that is buffered as a whole; for a model's
    response that is translated or guarded see `longest_model_response`.

    `http1_idle_timeout_ms` bounds the idle time between requests, and the time to receive a request head.
    `http1_max_headers` None means the codec's default. A connection older than `max_connection_duration_ms` is
    closed at the end of its running request; None means no limit. `path_normalization` says what becomes of paths with
    dot segments or needless escapes. Without `keeps_underscores`, request headers with underscores are dropped.
    With `keeps_header_case`, header names stay as HTTP/1.1 peers wrote them, otherwise they are sent in lower case.
    None for a window of HTTP/2 lets it grow with what its reader takes, for another size means the engine's default.
    `http2_resets` streams may be given up, and `http2_control_frames` may come that carry nothing; both are of one
    connection, and come back with time. A client may owe a part of its body, or take nothing of a response, for
    `stall_timeout_ms`.
    Without `http2_keepalive_ms` no PING is sent; a client has `http2_keepalive_timeout_ms` to answer one.
    `request_ids`: whether requests get an id in `x-request-id`, or keep that of their client where it is usable.
    `tracing`: which requests have spans; None: none. `metrics`: where metrics are sent; None: nowhere.
    `network_authorization` says who may connect; None: everybody. Behind it `network_ext_authz` is asked; None: nobody.
    `proxy_protocol` holds for every port; None: for those alone that ask for it, with its defaults. `connect` says what
    becomes of CONNECT: it is refused, is routed like other requests, or opens a tunnel to another port of the gateway,
    beside which there are no requests.
    """

    max_buffer_bytes: int = 2_097_152
    http1_idle_timeout_ms: int = 600_000
    http1_max_headers: int | None = None
    max_connection_duration_ms: int | None = None
    http2_window: int | None = None
    http2_connection_window: int | None = None
    http2_frame: int | None = None
    http2_max_header: int | None = None
    http2_max_fields: int | None = None
    http2_streams: int | None = None
    http2_continuations: int | None = None
    http2_resets: int | None = None
    http2_control_frames: int | None = None
    http2_keepalive_ms: int | None = None
    http2_keepalive_timeout_ms: int = 20_000
    stall_timeout_ms: int = STALL_TIMEOUT_MS
    keeps_underscores: bool = False
    keeps_header_case: bool = False
    path_normalization: Literal["resolve", "refuse", "keep"] = "resolve"
    max_model_response_bytes: int | None = None
    tls_handshake_timeout_ms: int = 15_000
    keepalives: Keepalives = Keepalives()
    network_authorization: Authorization | None = None
    network_ext_authz: ExtAuthz | None = None
    proxy_protocol: ProxyProtocol | None = None
    connect: Literal["deny", "route", "tunnel"] = "deny"
    request_ids: Literal["off", "generate", "trust"] = "off"
    tracing: Tracing | None = None
    metrics: OtlpMetrics | None = None
    access_log: AccessLog = AccessLog()

    @property
    def longest_model_response(self) -> int:
        """Return the most bytes of a model's response that is translated or guarded."""
        if self.max_model_response_bytes is None:
            return max(MAX_MODEL_RESPONSE_BYTES, self.max_buffer_bytes)
        return self.max_model_response_bytes
