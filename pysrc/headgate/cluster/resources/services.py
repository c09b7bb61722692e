"""Policies that ask a service: external authorization and processing, rate limits, MCP guardrails."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.formats import (
    BYTE_SIZE,
    CEL,
    CEL_MAP,
    COUNT,
    FAILURE_MODE,
    HEADER_NAME,
    ONE_ENDPOINT,
    PSEUDO_NAME,
    SHORT,
    STRING_MAP,
    TINY,
    conditional,
    endpoint,
)
from headgate.cluster.resources.schema import (
    Json,
    default,
    described,
    exactly_one,
    flag,
    integer,
    listed,
    mapped,
    record,
    rule,
    ruled,
    words,
)
from headgate.cluster.resources.shapes import entry, like, of, words_of
from headgate.config.shape import external
from headgate.config.shape.vocabulary import MapOf, Object, Shape

_HEADERS: Final = listed(PSEUDO_NAME, 1, 64)
_AUTH_GRPC: Final = record({"contextExtensions": STRING_MAP, "requestMetadata": CEL_MAP})
_AUTH_HTTP: Final = record(
    {
        "path": CEL,
        "redirect": CEL,
        "body": CEL,
        "allowedRequestHeaders": _HEADERS,
        "addRequestHeaders": CEL_MAP,
        "allowedResponseHeaders": listed(HEADER_NAME, 1, 64),
        "responseMetadata": CEL_MAP,
    }
)
_AUTH_FIELDS: Final = {
    **endpoint(path=True),
    "failureMode": FAILURE_MODE,
    "grpc": _AUTH_GRPC,
    "http": _AUTH_HTTP,
    "forwardBody": record({"maxSize": BYTE_SIZE}, required=("maxSize",)),
    "cache": described(
        record({"key": listed(CEL, 1, 16), "ttl": CEL, "maxEntries": COUNT}, required=("key", "ttl")),
        "Safe only if the key has every property of a request that the service decides by.",
    ),
}
_AUTH_RULES: Final = (
    ONE_ENDPOINT,
    exactly_one("grpc", "http"),
    rule(
        "!has(self.url) || has(self.http) || !self.url.matches('^https?://[^/]+/.')",
        "url may have a path with http only",
    ),
    rule(
        "!has(self.forwardBody) || !has(self.http) || !has(self.http.body)",
        "forwardBody may not be set together with http.body",
    ),
)
EXT_AUTH: Final = conditional(record(_AUTH_FIELDS, rules=_AUTH_RULES), _AUTH_FIELDS, _AUTH_RULES)
# At a backend: without conditions.
PLAIN_EXT_AUTH: Final = record(_AUTH_FIELDS, rules=_AUTH_RULES)


def _object(shape: Shape) -> Object:
    if not isinstance(shape, Object):
        raise TypeError("no object of the file")
    return shape


_OPTIONS: Final = _object(entry(external.EXT_PROC, "processingOptions"))
_PROCESSING: Final = like(
    _OPTIONS,
    {
        name: default(of(entry(_OPTIONS, name)), "FullDuplexStreamed" if "Body" in name else "Send")
        for name in _OPTIONS.fields
        if name.endswith("Mode")
    }
    | {"allowModeOverride": default(flag(), False)},
)
_PROC_FIELDS: Final = {
    **endpoint(path=False),
    "failureMode": FAILURE_MODE,
    "processingOptions": _PROCESSING,
    "requestAttributes": CEL_MAP,
    "responseAttributes": CEL_MAP,
    "metadataContext": mapped(CEL_MAP, 64),
}
EXT_PROC: Final = conditional(record(_PROC_FIELDS, rules=(ONE_ENDPOINT,)), _PROC_FIELDS, (ONE_ENDPOINT,))

LOCAL_LIMIT: Final = like(external.WINDOW, {"burst": integer(0, 2**31 - 1), "unit": words_of(external.UNIT)})
_ENTRY: Final = record({"name": TINY, "expression": CEL}, required=("name", "expression"))
_DESCRIPTOR: Final = record(
    {
        "entries": listed(_ENTRY, 1, 16),
        "unit": words_of(external.REMOTE_KIND),
        "cost": CEL,
        "limitOverride": CEL,
    },
    required=("entries",),
)
GLOBAL_LIMIT: Final = record(
    {
        **endpoint(path=False),
        "domain": SHORT,
        "descriptors": listed(_DESCRIPTOR, 1, 16),
        "failureMode": FAILURE_MODE,
    },
    required=("domain", "descriptors"),
    rules=(ONE_ENDPOINT,),
)
_LIMIT_FIELDS: Final = {"local": listed(LOCAL_LIMIT, 1, 16), "global": GLOBAL_LIMIT}
_ANY_LIMIT: Final = (
    rule("has(self.local) || has(self.global)", "at least one of the fields in [local global] must be set"),
)
RATE_LIMIT: Final = conditional(record(_LIMIT_FIELDS, rules=_ANY_LIMIT), _LIMIT_FIELDS, _ANY_LIMIT)

_METHODS: Final = external.GUARDRAIL.fields["methods"].shape
_PHASE: Final = of(_METHODS.item) if isinstance(_METHODS, MapOf) else words()
_REMOTE: Final = record(
    {
        **endpoint(path=False),
        "failureMode": FAILURE_MODE,
        "metadata": CEL_MAP,
        "allowedRequestHeaders": described(_HEADERS, "Unset: all headers and pseudo-headers."),
        "disallowedRequestHeaders": described(_HEADERS, "Never sent, whatever is allowed."),
    },
    rules=(ONE_ENDPOINT,),
)
METHODS: Final = ruled(
    mapped(_PHASE, 64, 1),
    rule(
        "self.all(k, size(k) >= 1 && size(k) <= 128 && k.matches('^([*]|[^*]+[*]?|[*][^*]+)$'))",
        "a method has at most one *, at its start or its end",
    ),
)
_PROCESSOR: Final = record({"remote": _REMOTE, "methods": METHODS}, required=("remote", "methods"))
MCP_GUARDRAILS: Final[Json] = record({"processors": listed(_PROCESSOR, 1, 16)}, required=("processors",))
