"""`frontendPolicies`: client connections, access log, tracing."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.access import RULES
from headgate.config.shape.collector import LOG_KEYS, OTLP_LOG, TRACING
from headgate.config.shape.external import EXT_AUTHZ
from headgate.config.shape.listener import LEAST_VERSION, MOST_VERSION
from headgate.config.shape.scalars import (
    BYTE_SIZE,
    CEL,
    DURATION,
    STRING_MAP,
    STRINGS,
    UINT8,
    unsigned,
)
from headgate.config.shape.upstream import KEEPALIVE
from headgate.config.shape.vocabulary import ListOf, Object, WordChoice, maybe, optional, required

FRONTEND_HTTP: Final = Object(
    "FrontendHttp",
    {
        "maxBufferSize": optional(BYTE_SIZE),
        "maxModelResponseSize": maybe(BYTE_SIZE),
        "http1MaxHeaders": maybe(unsigned("MaxHeaders", 65_535, 1)),
        "http1IdleTimeout": optional(DURATION),
        "headersWithUnderscores": optional(WordChoice("UnderscoreHeaders", ("drop", "keep"))),
        "pathNormalization": optional(WordChoice("PathNormalization", ("resolve", "refuse", "keep"))),
        "http1HeaderCase": optional(WordChoice("HeaderCase", ("lowercase", "preserve"))),
        "http2WindowSize": maybe(unsigned("Http2Window", 2_147_483_647, 1)),
        "http2ConnectionWindowSize": maybe(unsigned("Http2ConnectionWindow", 2_147_483_647, 65_535)),
        "http2FrameSize": maybe(unsigned("Http2Frame", 16_777_215, 16_384)),
        "http2MaxHeaderSize": maybe(unsigned("Http2HeaderList", 4_294_967_295, 1)),
        "http2MaxHeaders": maybe(unsigned("Http2MaxHeaders", 65_535, 1)),
        "http2MaxConcurrentStreams": maybe(unsigned("Http2Streams", 10_000, 1)),
        "http2MaxContinuations": maybe(unsigned("Http2Continuations", 1_024)),
        "http2MaxResets": maybe(unsigned("Http2Resets", 1_000_000, 1)),
        "http2MaxControlFrames": maybe(unsigned("Http2ControlFrames", 1_000_000, 1)),
        "http2KeepaliveInterval": maybe(DURATION),
        "http2KeepaliveTimeout": maybe(DURATION),
        "stallTimeout": maybe(DURATION),
        "maxConnectionDuration": maybe(DURATION),
        "requestId": optional(WordChoice("RequestIds", ("off", "generate", "trust"))),
    },
)
FRONTEND_TLS: Final = Object(
    "FrontendTls",
    {
        "handshakeTimeout": optional(DURATION),
        "alpn": maybe(ListOf(ListOf(UINT8))),
        "minVersion": LEAST_VERSION,
        "maxVersion": MOST_VERSION,
        "cipherSuites": maybe(STRINGS),
        "keyExchangeGroups": maybe(STRINGS),
    },
)
PROXY_PROTOCOL: Final = Object(
    "ProxyProtocol",
    {
        "version": optional(WordChoice("ProxyVersion", ("v1", "v2", "all"))),
        "mode": optional(WordChoice("ProxyMode", ("strict", "optional"))),
    },
)
ACCESS_LOG: Final = Object(
    "AccessLog",
    {
        "filter": maybe(CEL),
        "add": optional(STRING_MAP),
        "remove": optional(LOG_KEYS),
        "otlp": maybe(OTLP_LOG),
        "database": maybe(
            Object(
                "LogDatabase",
                {
                    "llm": maybe(WordChoice("LogDatabaseLlm", ("metadata", "full"))),
                    "add": optional(STRING_MAP),
                },
            )
        ),
    },
)
CONNECT: Final = Object(
    "Connect", {"mode": required(WordChoice("ConnectMode", ("deny", "route", "tunnel")))}
)
FRONTEND: Final = Object(
    "FrontendPolicies",
    {
        "http": maybe(FRONTEND_HTTP),
        "tls": maybe(FRONTEND_TLS),
        "tcp": maybe(Object("FrontendTcp", {"keepalives": required(KEEPALIVE)})),
        "networkAuthorization": maybe(RULES),
        "networkExtAuthz": maybe(EXT_AUTHZ),
        "proxy": maybe(PROXY_PROTOCOL),
        "proxyProtocol": maybe(PROXY_PROTOCOL),
        "connect": maybe(CONNECT),
        "accessLog": maybe(ACCESS_LOG),
        "logging": maybe(ACCESS_LOG),
        "tracing": maybe(TRACING),
    },
    apart=(("proxy", "proxyProtocol"), ("accessLog", "logging")),
)
