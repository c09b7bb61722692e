"""Policies that change or answer a request without calling a service."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.scalars import (
    BOOL,
    BYTE_SIZE,
    BYTES,
    CEL,
    CEL_MAP,
    DURATION,
    HEADER_VALUE,
    NUMBER,
    PORT,
    STATUS,
    STRING,
    STRING_MAP,
    STRINGS,
    TARGET_REFERENCE,
    UINT8,
    unsigned,
)
from headgate.config.shape.vocabulary import (
    ListOf,
    MapOf,
    Object,
    Scalar,
    Union,
    WordChoice,
    maybe,
    optional,
    required,
)
from headgate.document import fields

# A configured length or coding would contradict the body that is really sent (RFC 9112 section 6.3).
FRAMING: Final = ("content-length", "transfer-encoding")


def free_header(text: str) -> str:
    """Return the name of a header that a configuration may change, in lower case; raises ValueError."""
    name = fields.header_name(text)
    if name in FRAMING:
        raise ValueError(f"{name} is set by the gateway alone")
    return name


def _modified_name(text: str) -> str:
    return text if text == ":authority" else free_header(text)


MODIFIED_NAME: Final = Scalar("ModifiedHeader", (str,), _modified_name)
HEADER_MODIFIER: Final = Object(
    "HeaderModifier",
    {
        "add": optional(MapOf(HEADER_VALUE, _modified_name)),
        "set": optional(MapOf(HEADER_VALUE, _modified_name)),
        "remove": optional(ListOf(MODIFIED_NAME)),
    },
)
AUTHORITY_REWRITE: Final = Union(
    "AuthorityRewrite",
    (
        WordChoice("AuthorityMode", ("auto", "none")),
        Object(
            "AuthorityValue",
            {"full": optional(STRING), "host": optional(STRING), "port": optional(PORT)},
            one_of=("full", "host", "port"),
        ),
    ),
)
PATH_REWRITE: Final = Object(
    "PathRewrite", {"full": optional(STRING), "prefix": optional(STRING)}, one_of=("full", "prefix")
)
REDIRECT: Final = Object(
    "RequestRedirect",
    {
        "scheme": maybe(STRING),
        "authority": maybe(AUTHORITY_REWRITE),
        "path": maybe(PATH_REWRITE),
        "status": maybe(STATUS),
    },
)
REWRITE: Final = Object("UrlRewrite", {"authority": maybe(AUTHORITY_REWRITE), "path": maybe(PATH_REWRITE)})
MIRROR: Final = Object(
    "RequestMirror", {"backend": required(TARGET_REFERENCE), "percentage": required(NUMBER)}
)
MIRRORS: Final = Union("RequestMirrors", (MIRROR, ListOf(MIRROR)))
DIRECT_RESPONSE: Final = Object(
    "DirectResponse",
    {
        "status": required(unsigned("ResponseStatus", 599, 200)),
        "body": optional(BYTES),
        "bodyExpression": maybe(CEL),
        "headers": optional(CEL_MAP),
    },
)
TRANSFORM: Final = Object(
    "Transform",
    {
        "add": optional(STRING_MAP),
        "set": optional(STRING_MAP),
        "remove": optional(STRINGS),
        "replace": maybe(STRING),
        "body": maybe(STRING),
        "metadata": optional(STRING_MAP),
    },
)
TRANSFORMATION: Final = Object("Transformation", {"request": maybe(TRANSFORM), "response": maybe(TRANSFORM)})
CORS: Final = Object(
    "Cors",
    {
        "allowCredentials": optional(BOOL),
        "allowHeaders": optional(STRINGS),
        "allowMethods": optional(STRINGS),
        "allowOrigins": optional(STRINGS),
        "exposeHeaders": optional(STRINGS),
        "maxAge": maybe(DURATION),
    },
)
USAGE_HEADERS: Final = Object(
    "UsageHeaders",
    {"cost": optional(BOOL), "tokens": optional(BOOL), "overhead": optional(BOOL), "generation": optional(BOOL)},
)
CSRF: Final = Object("Csrf", {"additionalOrigins": optional(ListOf(STRING, unique=True))})
BUFFER_BODY: Final = Object(
    "BufferBody",
    {"maxBytes": maybe(BYTE_SIZE), "failureMode": optional(WordChoice("BufferFailure", ("failClosed", "failOpen")))},
)
BUFFER: Final = Object("Buffer", {"request": maybe(BUFFER_BODY), "response": maybe(BUFFER_BODY)})
TIMEOUT: Final = Object(
    "Timeout", {"requestTimeout": maybe(DURATION), "backendRequestTimeout": maybe(DURATION)}
)
RETRY_BUDGET: Final = Object(
    "RetryBudget",
    {
        "percent": optional(unsigned("RetryPercent", 1000)),
        "minPerSecond": optional(unsigned("RetriesPerSecond", 10_000)),
    },
)
RETRY: Final = Object(
    "Retry",
    {
        "attempts": optional(unsigned("RetryAttempts", UINT8.facets["maximum"], 1)),
        "backoff": maybe(DURATION),
        "codes": required(ListOf(STATUS)),
        "precondition": maybe(CEL),
        "condition": maybe(CEL),
        "budget": maybe(RETRY_BUDGET),
    },
)
DELAY: Final = Object("Delay", {"duration": required(CEL)})
