"""`config`: settings of the process."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.collector import OTLP_METRICS
from headgate.config.shape.scalars import (
    BOOL,
    CEL,
    DURATION,
    HEADER_NAME,
    HIDDEN,
    ORIGIN,
    POSITIVE32,
    SAMPLING,
    STRING,
    STRING_MAP,
    STRINGS,
    UINT8,
    UINT32,
    UINT64,
    WORD_OR_INT,
    unsigned,
)
from headgate.config.shape.upstream import KEEPALIVE
from headgate.config.shape.vocabulary import (
    ListOf,
    MapOf,
    Object,
    Scalar,
    Union,
    WordChoice,
    deprecated,
    later,
    maybe,
    optional,
    required,
)
from headgate.document import fields
from headgate.document.secret import Secret

RATES: Final = Object(
    "Rates",
    {
        name: maybe(STRING)
        for name in ("input", "output", "cacheRead", "cacheWrite", "reasoning", "inputAudio", "outputAudio")
    },
)
CATALOG: Final = Object(
    "Catalog",
    {
        "providers": optional(
            MapOf(
                Object(
                    "CatalogProvider",
                    {
                        "models": optional(
                            MapOf(
                                Object(
                                    "CatalogModel",
                                    {
                                        "rates": optional(RATES),
                                        "tiers": optional(
                                            ListOf(
                                                Object(
                                                    "CatalogTier",
                                                    {
                                                        "contextOver": required(UINT64),
                                                        "rates": required(RATES),
                                                    },
                                                )
                                            )
                                        ),
                                        "tags": optional(ListOf(STRING, unique=True)),
                                    },
                                )
                            )
                        )
                    },
                )
            )
        )
    },
)
CATALOG_SOURCE: Final = Object(
    "CatalogSource",
    {"file": optional(STRING), "inline": optional(Union("InlineCatalog", (STRING, CATALOG)))},
    one_of=("file", "inline"),
)
# That of a server has a password; that of SQLite is the path of a file.
DATABASE_URL: Final = Scalar("DatabaseUrl", (str,), Secret, {"writeOnly": True}, secret=True, open_start="sqlite:")
DATABASE: Final = Object(
    "Database",
    {
        "url": required(DATABASE_URL),
        "maxConnections": maybe(POSITIVE32),
        # What is kept: the oldest records go first.
        "retention": maybe(
            Object(
                "Retention",
                {
                    "records": maybe(unsigned("RetainedRecords", 2**53, 1)),
                    "bytes": maybe(unsigned("RetainedBytes", 2**53, 1_048_576)),
                    "age": maybe(DURATION),
                },
            )
        ),
    },
)

BACKEND_DEFAULTS: Final = Object(
    "BackendDefaults",
    {
        "keepalives": optional(KEEPALIVE),
        "connectTimeout": optional(DURATION),
        "poolIdleTimeout": optional(DURATION),
        "poolMaxSize": maybe(UINT32),
        "poolMaxWaiting": maybe(POSITIVE32),
    },
)
MCP: Final = Object(
    "McpSettings",
    {
        "sessionTtl": maybe(DURATION),
        "maxSessions": maybe(POSITIVE32),
        "maxProcesses": maybe(POSITIVE32),
        "maxUninitialized": maybe(POSITIVE32),
        "initializeTimeout": maybe(DURATION),
        "sessionMaxAge": maybe(DURATION),
    },
)
LOG_FIELDS: Final = Object(
    "LogFields", {"remove": optional(ListOf(STRING, most=32)), "add": optional(STRING_MAP)}
)
LOGGING: Final = Object(
    "Logging",
    {
        "filter": deprecated(maybe(CEL)),
        "fields": deprecated(maybe(LOG_FIELDS)),
        "level": maybe(Union("LogLevel", (STRING, STRINGS))),
        "format": maybe(WordChoice("LogFormat", ("text", "json"))),
        "database": deprecated(maybe(DATABASE)),
    },
)
TRACING: Final = Object(
    "ProcessTracing",
    {
        "otlpEndpoint": maybe(STRING),
        "headers": optional(MapOf(HIDDEN)),
        "otlpProtocol": optional(WordChoice("OtlpProtocol", ("grpc", "http"))),
        "fields": maybe(Object("TracingFields", {"remove": optional(STRINGS), "add": optional(STRING_MAP)})),
        "randomSampling": maybe(SAMPLING),
        "clientSampling": maybe(SAMPLING),
        "path": maybe(STRING),
    },
)
METRICS: Final = Object(
    "Metrics",
    {
        "remove": optional(STRINGS),
        "fields": maybe(Object("MetricFields", {"add": optional(STRING_MAP)})),
        "otlp": maybe(OTLP_METRICS),
    },
)
HBONE: Final = Object(
    "Hbone",
    {
        "windowSize": maybe(unsigned("HboneWindow", 2_147_483_647, 1)),
        "connectionWindowSize": maybe(unsigned("HboneConnectionWindow", 2_147_483_647, 65_535)),
        "frameSize": maybe(unsigned("HboneFrame", 16_777_215, 16_384)),
        # Of tunnels that the gateway opens.
        "poolMaxStreamsPerConn": maybe(unsigned("HboneStreams", 1_000, 1)),
        "poolUnusedReleaseTimeout": maybe(DURATION),
    },
)
FORWARDING: Final = Object(
    "ForwardingHeaders",
    {"xForwarded": optional(BOOL), "forwarded": optional(BOOL), "trustedHops": optional(UINT8)},
)


REDIS: Final = Object(
    "Redis",
    {
        "url": required(HIDDEN),
        "mode": optional(WordChoice("SharedMode", ("share", "exact"))),
        "failureMode": optional(WordChoice("SharedFailure", ("local", "deny"))),
        "timeout": optional(DURATION),
        "localShare": optional(unsigned("LocalShare", 100, 1)),
        "replicas": optional(unsigned("Replicas", 10_000, 1)),
        "keyPrefix": optional(STRING),
        "maxConnections": optional(unsigned("RedisConnections", 256, 1)),
        "tls": maybe(
            Object(
                "RedisTls",
                {"root": maybe(STRING), "cert": maybe(STRING), "key": maybe(STRING), "insecure": optional(BOOL)},
            )
        ),
    },
)


def _session_key(text: str) -> object:
    if len(text) != 64 or any(char not in "0123456789abcdefABCDEF" for char in text):
        raise ValueError("a session key has 64 hexadecimal digits")
    assert HIDDEN.parse is not None
    return HIDDEN.parse(text)


SESSION_KEY: Final = Scalar("SessionKey", (str,), _session_key, {"writeOnly": True}, secret=True)

DNS_FAMILY: Final = WordChoice("DnsFamily", ("All", "Auto", "V4Preferred", "V4Only", "V6Only"))
DNS: Final = Object(
    "Dns",
    {
        "lookupFamily": maybe(DNS_FAMILY),
        "edns0": maybe(BOOL),
        "servers": maybe(ListOf(Scalar("NameServer", (str,), fields.name_server), most=8)),
    },
)

PROCESS: Final = Object(
    "ProcessSettings",
    {
        "enableIpv6": maybe(BOOL),
        "dns": maybe(DNS),
        "localXdsPath": later(maybe(STRING)),
        "modelCatalog": maybe(ListOf(CATALOG_SOURCE)),
        "database": maybe(DATABASE),
        "storage": maybe(
            Object(
                "Storage",
                {
                    "mode": optional(
                        WordChoice("StorageMode", ("file", "hybrid", "readOnly"))
                    )
                },
            )
        ),
        "caAddress": later(maybe(STRING)),
        "caAuthToken": later(maybe(HIDDEN)),
        "xdsAddress": later(maybe(STRING)),
        "xdsAuthToken": later(maybe(HIDDEN)),
        "spiffe": maybe(Object("SpiffeSettings", {"endpoint": maybe(STRING)})),
        "namespace": later(maybe(STRING)),
        "gateway": later(maybe(STRING)),
        "trustDomain": later(maybe(STRING)),
        "additionalTrustDomains": later(maybe(STRING)),
        "skipValidateTrustDomain": later(maybe(BOOL), False),
        "serviceAccount": later(maybe(STRING)),
        "clusterId": later(maybe(STRING)),
        "network": later(maybe(STRING)),
        "adminAddr": maybe(STRING),
        "statsAddr": maybe(STRING),
        "readinessAddr": maybe(STRING),
        "standardAttributes": maybe(Object("StandardAttributes", {"user": maybe(CEL), "group": maybe(CEL)})),
        "histograms": optional(WordChoice("Histograms", ("classic", "native", "both"))),
        "session": maybe(Object("Session", {"key": required(SESSION_KEY)})),
        "mcp": maybe(MCP),
        "adminAllowedOrigins": optional(ListOf(ORIGIN, most=64)),
        "sensitiveHeaders": optional(ListOf(HEADER_NAME, most=64)),
        "customFunctions": optional(STRING),
        "connectionTerminationDeadline": maybe(DURATION),
        "connectionMinTerminationDeadline": maybe(DURATION),
        "workerThreads": maybe(WORD_OR_INT),
        "workerHeartbeatTimeout": maybe(DURATION),
        "tracing": deprecated(maybe(TRACING)),
        "logging": maybe(LOGGING),
        "metrics": maybe(METRICS),
        "backend": optional(BACKEND_DEFAULTS),
        "hbone": maybe(HBONE),
        "sharedState": maybe(Object("SharedState", {"redis": required(REDIS)})),
        # Off by default: existing configurations expect no forwarding headers.
        "forwardingHeaders": maybe(FORWARDING),
    },
    removed={"listener": "use 'frontendPolicies'"},
)
