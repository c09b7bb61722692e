"""`frontend` of a policy: connections of clients, access log, tracing, metrics."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.access import AUTHORIZATION
from headgate.cluster.resources.connection import FRONTEND_TCP
from headgate.cluster.resources.formats import (
    BYTE_SIZE,
    CEL,
    CONNECT_TIMEOUT,
    ONE_ENDPOINT,
    PATH,
    SECONDS,
    TINY,
    endpoint,
    named_expressions,
)
from headgate.cluster.resources.schema import (
    Json,
    at_least_one,
    default,
    integer,
    listed,
    record,
    rule,
    words,
)
from headgate.cluster.resources.shapes import entry, like, of, words_of
from headgate.config.shape import collector, frontend
from headgate.config.shape.upstream import KEY_GROUPS

CIPHERS: Final = (
    "TLS13_AES_256_GCM_SHA384", "TLS13_AES_128_GCM_SHA256", "TLS13_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)  # fmt: skip
_VERSION: Final = words("1.2", "1.3")
TLS: Final = record(
    {
        "handshakeTimeout": CONNECT_TIMEOUT,
        "alpnProtocols": listed(TINY, 1, 16),
        "minProtocolVersion": _VERSION,
        "maxProtocolVersion": _VERSION,
        "cipherSuites": listed(words(*CIPHERS), 1, len(CIPHERS), unique=True),
        "keyExchangeGroups": listed(words_of(KEY_GROUPS), 1, len(KEY_GROUPS.words)),
    },
    rules=(
        rule(
            "!has(self.minProtocolVersion) || !has(self.maxProtocolVersion) || "
            "self.minProtocolVersion <= self.maxProtocolVersion",
            "minProtocolVersion must not be later than maxProtocolVersion",
        ),
    ),
)
_HTTP: Final = frontend.FRONTEND_HTTP
HTTP: Final = like(
    _HTTP,
    {
        "maxBufferSize": BYTE_SIZE,
        "maxModelResponseSize": BYTE_SIZE,
        "http1MaxHeaders": integer(1, 4_096),
        "http1IdleTimeout": SECONDS,
        # Not 16,777,215 as in HTTP/2: the limit of peers, which resources that work there keep to.
        "http2FrameSize": integer(16_384, 1_677_215),
        "http2KeepaliveInterval": SECONDS,
        "http2KeepaliveTimeout": SECONDS,
        "stallTimeout": SECONDS,
        "maxConnectionDuration": SECONDS,
    },
)
PROXY_PROTOCOL: Final = like(
    frontend.PROXY_PROTOCOL,
    {
        "mode": default(of(entry(frontend.PROXY_PROTOCOL, "mode")), "Strict"),
        "version": default(of(entry(frontend.PROXY_PROTOCOL, "version")), "V2"),
    },
)
_PROTOCOL: Final = default(words_of(collector.OTLP_PROTOCOL), "GRPC")
_OTLP_RULES: Final = (
    ONE_ENDPOINT,
    rule("!has(self.path) || self.protocol == 'HTTP'", "path needs protocol HTTP"),
    rule(
        "!has(self.url) || self.protocol == 'HTTP' || !self.url.matches('^https?://[^/]+/.')",
        "url may have a path with protocol HTTP only",
    ),
)
_ATTRIBUTES: Final = record(
    {"add": named_expressions(64, 1), "remove": listed(TINY, 1, 32, unique=True)},
    rules=(at_least_one("add", "remove"),),
)
_OTLP: Final = record(
    {**endpoint(path=True), "protocol": _PROTOCOL, "path": PATH, "filter": CEL, "attributes": _ATTRIBUTES},
    rules=_OTLP_RULES,
)
_LOG_FIELDS: Final = {"filter": CEL, "attributes": _ATTRIBUTES, "otlp": _OTLP}
ACCESS_LOG: Final = record(_LOG_FIELDS, rules=(at_least_one(*_LOG_FIELDS),))
TRACING: Final = record(
    {
        **endpoint(path=True),
        "protocol": _PROTOCOL,
        "path": PATH,
        "attributes": _ATTRIBUTES,
        "resources": named_expressions(64, 1),
        "randomSampling": CEL,
        "clientSampling": CEL,
        "filter": CEL,
    },
    rules=_OTLP_RULES,
)
METRICS: Final = record(
    {"attributes": record({"add": named_expressions(16, 1)}, required=("add",))}, required=("attributes",)
)
FRONTEND_FIELDS: Final[dict[str, Json]] = {
    "tcp": FRONTEND_TCP,
    "tls": TLS,
    "http": HTTP,
    "networkAuthorization": AUTHORIZATION,
    "proxyProtocol": PROXY_PROTOCOL,
    "connect": like(frontend.CONNECT),
    "accessLog": ACCESS_LOG,
    "tracing": TRACING,
    "metrics": METRICS,
}
# What may be said for one listener; the rest is about the port, before the listener is known.
OF_A_LISTENER: Final = ("accessLog", "tracing", "metrics")
FRONTEND: Final = record(FRONTEND_FIELDS, rules=(at_least_one(*FRONTEND_FIELDS),))
