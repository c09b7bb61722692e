"""Answers of the gateway's own on the paths of models: the error object of the client's format.

Its message has the text that the same answer has elsewhere, and says what to do.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from headgate.dialect.llm import faults, rate_limits
from headgate.dialect.llm.rate_limits import Limit
from headgate_engine.context.request import Reply
from headgate_engine.llm.answer_body import TOO_LARGE, TOO_MANY
from headgate_engine.llm.translate.fault_kinds import kind_of_status
from headgate_engine.llm.translate.readers import Garbage, load_json

# What becomes of an answer, by the label `reason`: its code, and what to do. Other answers go as they are: they are
# configured, or of another protocol.
ADVICE: Final[dict[str, tuple[str, str]]] = {
    "APIKeyAuth": ("invalid_api_key", "send a key of this gateway, in `Authorization: Bearer <key>` unless "
                   "another place is configured"),
    "JwtAuth": ("invalid_token", "send a valid token in `Authorization: Bearer <token>`"),
    "BasicAuth": ("invalid_credentials", "send a valid user name and password"),
    "Authorization": ("permission_denied", "a rule of the gateway refuses this request; its operator can allow it"),
    "RateLimit": ("rate_limit_exceeded", "wait, then send the request again"),
    "Guardrail": ("guardrail_intervention", "a guard of the gateway refuses it; change the prompt"),
    "Timeout": ("upstream_timeout", "the provider did not answer in time; send the request again, or raise `timeout`"),
    "UpstreamFailure": ("upstream_error", "the provider failed; send the request again later"),
    "NoHealthyBackend": ("no_healthy_backend", "no provider is available now; send the request again later"),
    "NotFound": ("not_found", "look at the path"),
    "InvalidRequest": ("invalid_request", "correct the request"),
    "ExtAuth": ("external_authorization_failed", "the authorization service refuses it, or failed"),
    "ExtProc": ("processing_failed", "the external processor of the gateway failed; send the request again later"),
    "Internal": ("internal_error", "the gateway's log has the reason"),
}  # fmt: skip
# How an answer for a failed processor or authorization service begins; others are the service's own.
SERVICES_FAILED: Final = {"ExtProc": b"ext_proc failed", "ExtAuth": b"external authorization failed"}
# The same by code, where the code says more than the reason.
BY_CODE: Final[dict[str, str]] = {
    "model_not_found": "`GET /v1/models` lists the models that are",
    "model_not_allowed": "`GET /v1/models` lists the models that it may use",
    "model_authorization_denied": "`GET /v1/models` lists the models that this request may use",
    "missing_model": "name one in `model`",
    "invalid_model": "name one that `GET /v1/models` lists",
    "request_body_too_large": "shorten it, or raise `frontendPolicies.http.maxBufferSize`",
    "virtual_model_not_resolved": "its targets require other headers or permissions",
    "virtual_model_no_matching_target": "add a last target without `when` for all other requests",
    "response_too_large": "request less, or raise that limit",
    "too_many_responses": "send the request again later",
    "unsupported_conversion": "choose a model whose provider supports this format",
}
# Texts for answers whose body is empty elsewhere.
TEXTS: Final[dict[tuple[str, int], str]] = {
    ("Authorization", 403): "authorization failed",
    ("InvalidRequest", 413): "the request body is larger than the buffer",
    ("UpstreamFailure", 502): "the provider's answer is larger than the buffer",
}
CODES: Final[dict[tuple[str, int], str]] = {
    ("InvalidRequest", 413): "request_body_too_large",
    ("BasicAuth", 429): "rate_limit_exceeded",
    ("Guardrail", 503): "guardrail_failed",
}
# Failures of providers by a part of the text.
FAILURES: Final = ((TOO_LARGE, "response_too_large"), (TOO_MANY, "too_many_responses"))
GUARDS_FAILED: Final = "a guard of the gateway failed; send the request again later"
# Texts of guards that are the gateway's; others are configured, and sent as they are.
GUARD_TEXTS: Final = frozenset((
    "The request was rejected due to inappropriate content", "failed to process LLM request: prompt guard failed",
    "Content blocked by guardrail policy",
))  # fmt: skip
# Answers that are kept, and the longest body among them.
KEPT: Final = 512
KEPT_BYTES: Final = 1024
JSON_TYPE: Final = (b"content-type", b"application/json")
RESOURCE: Final = b"x-ratelimit-resource"
# Where clients of a format look for the id of a request, beside `x-request-id`.
ID_FIELDS: Final[dict[str, bytes]] = {
    "messages": b"request-id", "count_tokens": b"request-id", "converse": b"x-amzn-requestid",
}  # fmt: skip


def speak(
    format: str, reply: Reply, limit: int, remaining: int, reset_s: int, request_id: bytes | None = None
) -> Reply:
    """Return an answer in the client's format. The numbers are those of a rate limit that was reached, else -1."""
    wait = _wait(reply, reset_s)
    headed = any(name not in (b"content-type", RESOURCE) for name, _ in reply.headers)
    # What a client wrote may stand in it: a long one is not kept.
    make = _body if len(reply.body) <= KEPT_BYTES else _body.__wrapped__
    body = make(format, reply.status, reply.reason, reply.body, headed, wait)
    if body is None:
        return reply
    if request_id is not None:
        body = faults.with_request_id(format, body, request_id.decode("latin-1"))
    kept = tuple(pair for pair in reply.headers if pair[0] not in (b"content-type", b"retry-after", RESOURCE))
    fields = (JSON_TYPE, *kept)
    if request_id is not None and format in ID_FIELDS:
        fields += ((ID_FIELDS[format], request_id),)
    if format == "converse":
        fields += ((faults.AWS_FIELD, faults.aws_type(reply.status)),)
    if reply.status == 429:
        fields += ((b"retry-after", str(wait).encode()),)
        if limit >= 0:
            resource = dict(reply.headers).get(RESOURCE, b"requests").decode()
            fields += rate_limits.fields(format, [Limit(resource, limit, remaining, reset_s)])
    return Reply(reply.status, body, fields, reply.reason)


def _wait(reply: Reply, reset_s: int) -> int:
    """Return the seconds after which a client may ask again; 0 for answers that do not change with time."""
    if reply.status != 429:
        return 0
    told = dict(reply.headers).get(b"retry-after", b"")
    return max(int(told) if told.isdigit() else reset_s, 1)


@lru_cache(maxsize=KEPT)
def _body(format: str, status: int, reason: str, body: bytes, headed: bool, wait: int) -> bytes | None:
    """Return the error object, None for an answer that goes as it is."""
    if reason not in ADVICE:
        return None
    text, kind, code = body.decode("utf-8", "replace"), None, None
    if body.startswith(b"{"):
        told = _told(body)
        if told is None:
            return None
        text, kind, code = told
    elif (reason == "Guardrail" and (headed or text not in GUARD_TEXTS)) or (
        reason in SERVICES_FAILED and (headed or not body.startswith(SERVICES_FAILED[reason]))
    ):
        return None
    code = code or next((known for part, known in FAILURES if part in text), None)
    code = code or CODES.get((reason, status)) or ADVICE[reason][0]
    advice = GUARDS_FAILED if code == "guardrail_failed" else BY_CODE.get(code, ADVICE[reason][1])
    if wait:
        advice = f"wait {wait} s, then send the request again"
    text = text or TEXTS.get((reason, status)) or f"status {status}"
    if kind is None:
        general = 400 <= status < 500 and status != 429
        kind = "invalid_request_error" if general else kind_of_status(status)
    fault = faults.LlmFault(kind, f"{text}: {advice}", code)
    return faults.write(format, status, fault, wait)


def _told(body: bytes) -> tuple[str, str | None, str | None] | None:
    """Return message, type and code of an answer in JSON, None for one that is in the client's format already."""
    try:
        found: Any = load_json(body)
    except Garbage:
        return None
    error = found.get("error")
    if isinstance(error, str):
        return str(found.get("error_description") or error), None, None
    if not isinstance(error, dict) or not {"message", "code"} <= error.keys() <= {"message", "type", "code"}:
        return None
    return str(error["message"]), error.get("type"), str(error["code"])
