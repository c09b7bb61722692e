"""Virtual keys and their teams."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.scalars import (
    BOOL,
    DURATION,
    HIDDEN,
    POSITIVE32,
    STRING,
    STRING_MAP,
    STRINGS,
    UINT64,
    unsigned,
)
from headgate.config.shape.vocabulary import (
    Anything,
    ListOf,
    Object,
    Scalar,
    WordChoice,
    maybe,
    optional,
    required,
)
from headgate.document import fields

PERCENT: Final = unsigned("Percent", 100, 1)
DOLLARS: Final = Scalar("Dollars", (int, float, str), fields.picodollars, {"minimum": 0})
TIMESTAMP: Final = Scalar("Timestamp", (str,), fields.unix_seconds, {"format": "date-time"})
USAGE_LIMIT: Final = Object(
    "UsageLimit",
    {
        "requests": optional(UINT64),
        "tokens": optional(UINT64),
        "dollars": optional(DOLLARS),
        "per": required(WordChoice("LimitWindow", ("minute", "day", "month"))),
        "warnAtPercent": maybe(PERCENT),
    },
    one_of=("requests", "tokens", "dollars"),
)
LIMITS: Final = ListOf(USAGE_LIMIT, most=9)
_ALLOWED: Final = {"allowedModels": maybe(STRINGS), "allowedTools": maybe(STRINGS), "allowedRoutes": maybe(STRINGS)}
KEY_TEAM: Final = Object(
    "KeyTeam",
    {"name": required(STRING), "limits": optional(LIMITS), "keyLimits": optional(LIMITS), **_ALLOWED},
)
VIRTUAL_KEY: Final = Object(
    "VirtualKey",
    {
        "name": required(STRING),
        "keyHash": required(HIDDEN),
        "owner": maybe(STRING),
        "team": maybe(STRING),
        "tags": optional(STRING_MAP),
        "metadata": optional(Anything()),
        "expires": maybe(TIMESTAMP),
        "revoked": optional(BOOL),
        "limits": maybe(LIMITS),
        **_ALLOWED,
    },
)
KEY_ALERTS: Final = Object(
    "KeyAlerts",
    {"url": required(HIDDEN), "secret": maybe(HIDDEN), "timeout": maybe(DURATION)},
)
VIRTUAL_KEYS: Final = Object(
    "VirtualKeys",
    {
        "teams": optional(ListOf(KEY_TEAM)),
        "keys": optional(ListOf(VIRTUAL_KEY)),
        "assumedOutputTokens": maybe(POSITIVE32),
        "assumedImageTokens": maybe(POSITIVE32),
        "assumedInputTokens": maybe(POSITIVE32),
        "failureMode": maybe(WordChoice("LeaseFailure", ("local", "deny"))),
        "alerts": maybe(KEY_ALERTS),
        "stopStreams": optional(BOOL),
        "journalFolder": maybe(STRING),
    },
)
