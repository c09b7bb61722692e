"""Where spans, log records and metrics are sent, over OTLP."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.scalars import (
    CEL,
    CEL_MAP,
    DURATION,
    SAMPLING,
    STRING,
    STRING_MAP,
    STRINGS,
    TARGET_FIELDS,
    TARGET_KEYS,
)
from headgate.config.shape.upstream import SIMPLE_POLICIES
from headgate.config.shape.vocabulary import ListOf, Object, WordChoice, maybe, optional

OTLP_PROTOCOL: Final = WordChoice("TelemetryProtocol", ("grpc", "http"))
LOG_KEYS: Final = ListOf(STRING, most=32, unique=True)
OTLP_LOG: Final = Object(
    "OtlpLog",
    {
        **TARGET_FIELDS,
        "policies": maybe(SIMPLE_POLICIES),
        "filter": maybe(CEL),
        "fields": maybe(Object("OtlpLogFields", {"remove": optional(LOG_KEYS), "add": optional(STRING_MAP)})),
        "protocol": optional(OTLP_PROTOCOL),
        "path": optional(STRING),
    },
    one_of=TARGET_KEYS,
)
TRACING: Final = Object(
    "Tracing",
    {
        **TARGET_FIELDS,
        "policies": maybe(SIMPLE_POLICIES),
        "attributes": optional(CEL_MAP),
        "resources": optional(CEL_MAP),
        "remove": optional(STRINGS),
        "randomSampling": maybe(SAMPLING),
        "clientSampling": maybe(SAMPLING),
        "filter": maybe(CEL),
        "path": optional(STRING),
        "protocol": optional(OTLP_PROTOCOL),
    },
    one_of=TARGET_KEYS,
)
OTLP_METRICS: Final = Object(
    "OtlpMetrics",
    {
        **TARGET_FIELDS,
        "policies": maybe(SIMPLE_POLICIES),
        "protocol": optional(OTLP_PROTOCOL),
        "path": optional(STRING),
        "interval": optional(DURATION),
    },
    one_of=TARGET_KEYS,
)
