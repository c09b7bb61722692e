"""`traffic` of a policy: what happens to requests before a backend is called."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.access import API_KEY, AUTHORIZATION, BASIC, JWT
from headgate.cluster.resources.formats import (
    BYTE_SIZE,
    CEL,
    FAILURE_MODE,
    HEADER_NAME,
    HEADER_VALUE,
    PSEUDO_NAME,
    REQUEST_TIMEOUT,
    SHORT,
    conditional,
    named_values,
    requires,
)
from headgate.cluster.resources.schema import (
    Json,
    at_least_one,
    at_most_one,
    default,
    flag,
    integer,
    listed,
    mapped,
    record,
    rule,
    ruled,
    text,
    words,
)
from headgate.cluster.resources.services import EXT_AUTH, EXT_PROC, RATE_LIMIT
from headgate.cluster.resources.shapes import entry, of
from headgate.config.shape import modifiers

_TRANSFORM_FIELDS: Final = {
    "set": named_values(PSEUDO_NAME, CEL, 16, 1),
    "add": named_values(PSEUDO_NAME, CEL, 16, 1),
    "remove": listed(HEADER_NAME, 1, 16, unique=True),
    "body": CEL,
    "metadata": mapped(CEL, 16, 1),
}
_TRANSFORM: Final = record(_TRANSFORM_FIELDS, rules=(at_least_one(*_TRANSFORM_FIELDS),))
_BOTH_WAYS: Final = {"request": _TRANSFORM, "response": _TRANSFORM}
_EITHER_WAY: Final = (at_least_one("request", "response"),)
PLAIN_TRANSFORMATION: Final = record(_BOTH_WAYS, rules=_EITHER_WAY)
TRANSFORMATION: Final = conditional(PLAIN_TRANSFORMATION, _BOTH_WAYS, _EITHER_WAY)

_HEADER_EDITS: Final = {
    "set": named_values(HEADER_NAME, HEADER_VALUE, 16),
    "add": named_values(HEADER_NAME, HEADER_VALUE, 16),
    "remove": listed(HEADER_NAME, 0, 16, unique=True),
}
HEADERS: Final = record(
    {"request": record(_HEADER_EDITS), "response": record(_HEADER_EDITS)}, rules=(at_least_one("request", "response"),)
)

_ALONE: Final = rule("!('*' in self) || self.size() == 1", "* stands alone")
_ORIGIN: Final = text(1, 253, r"^([*]|[a-zA-Z][a-zA-Z0-9+.-]*://([*]|([*][.])?[a-zA-Z0-9.-]+)(:([0-9]{1,5}|[*]))?)$")
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*")
_CORS_NAME: Final = text(1, 256, r"^([*]|[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256})$")
CORS: Final = record(
    {
        "allowOrigins": ruled(listed(_ORIGIN, 0, 64, unique=True), _ALONE),
        "allowCredentials": flag(),
        "allowMethods": ruled(listed(words(*_METHODS), 0, 9, unique=True), _ALONE),
        "allowHeaders": ruled(listed(_CORS_NAME, 0, 64, unique=True), _ALONE),
        "exposeHeaders": listed(_CORS_NAME, 0, 64, unique=True),
        "maxAge": default(integer(1, 2**31 - 1), 5),
    }
)
CSRF: Final = record({"additionalOrigins": listed(SHORT, 1, 16, unique=True)})
DELAY: Final = record({"duration": CEL}, required=("duration",))
_BUFFER_BODY: Final = record({"maxBytes": BYTE_SIZE, "failureMode": FAILURE_MODE})
BUFFER: Final = record(
    {"request": _BUFFER_BODY, "response": _BUFFER_BODY}, rules=(at_least_one("request", "response"),)
)

_DIRECT_FIELDS: Final = {
    "status": of(entry(modifiers.DIRECT_RESPONSE, "status")),
    "body": text(1, 4_096),
    "bodyExpression": CEL,
    "headers": named_values(HEADER_NAME, CEL, 16, 1),
}
_DIRECT_RULES: Final = (at_most_one("body", "bodyExpression"),)
DIRECT_RESPONSE: Final = conditional(
    record(_DIRECT_FIELDS, required=("status",), rules=_DIRECT_RULES),
    _DIRECT_FIELDS,
    (*_DIRECT_RULES, *requires("status")),
)
RETRY: Final = record(
    {
        "attempts": of(entry(modifiers.RETRY, "attempts")),
        "backoff": REQUEST_TIMEOUT,
        "codes": listed(integer(400, 599), 1, 64, unique=True),
        "precondition": CEL,
        "condition": CEL,
    }
)

TRAFFIC_FIELDS: Final[dict[str, Json]] = {
    "jwtAuthentication": JWT,
    "apiKeyAuthentication": API_KEY,
    "basicAuthentication": BASIC,
    "authorization": AUTHORIZATION,
    "cors": CORS,
    "csrf": CSRF,
    "extAuth": EXT_AUTH,
    "extProc": EXT_PROC,
    "rateLimit": RATE_LIMIT,
    "transformation": TRANSFORMATION,
    "headerModifiers": HEADERS,
    "hostRewrite": record({"mode": words("Auto", "None")}, required=("mode",)),
    "timeouts": record({"request": REQUEST_TIMEOUT}, required=("request",)),
    "retry": RETRY,
    "delay": DELAY,
    "buffer": BUFFER,
    "directResponse": DIRECT_RESPONSE,
}
BEFORE_ROUTING: Final = (
    "extAuth", "authorization", "transformation", "extProc", "jwtAuthentication", "basicAuthentication",
    "apiKeyAuthentication", "cors",
)  # fmt: skip
_AFTER: Final = [name for name in TRAFFIC_FIELDS if name not in BEFORE_ROUTING]
TRAFFIC: Final = record(
    {"phase": words("PreRouting", "PostRouting"), **TRAFFIC_FIELDS},
    rules=(
        at_least_one(*TRAFFIC_FIELDS),
        rule(
            "!has(self.phase) || self.phase != 'PreRouting' || !("
            + " || ".join(f"has(self.{name})" for name in _AFTER)
            + ")",
            f"phase PreRouting allows {', '.join(BEFORE_ROUTING)} only",
        ),
    ),
)
