"""The error table: every answer the gateway makes by itself, with status, body and `reason` label.

Bodies are plain text; the body limits answer with an empty body.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from headgate.policy import refusals
from headgate_engine.context.request import Reply


class ReplyRow(NamedTuple):
    """One answer. `body` is the text sent, `reason` the label in metrics and logs."""

    status: int
    body: str
    reason: str


# Names as in headgate_engine.link.reasons; a test proves that none is missing on either side.
REPLIES: dict[str, ReplyRow] = {
    "invalid_request": ReplyRow(400, "invalid request", "InvalidRequest"),
    "doubtful_path": ReplyRow(400, "the path has several readings", "InvalidRequest"),
    "method_not_allowed": ReplyRow(405, "method not allowed", "InvalidRequest"),
    "misdirected": ReplyRow(421, "misdirected request", "InvalidRequest"),
    "listener_not_found": ReplyRow(404, "listener not found", "NotFound"),
    "bind_not_found": ReplyRow(404, "bind not found", "NotFound"),
    "too_many_hops": ReplyRow(500, "too many internal hops", "Internal"),
    "route_not_found": ReplyRow(404, "route not found", "NotFound"),
    "body_too_large": ReplyRow(413, "", "InvalidRequest"),
    "no_valid_backends": ReplyRow(500, "no valid backends", "Internal"),
    "invalid_backend": ReplyRow(500, "invalid backend type", "Internal"),
    "internal": ReplyRow(500, "internal error", "Internal"),
    "upstream_protocol": ReplyRow(502, "upstream call failed: invalid response", "UpstreamFailure"),
    "response_too_large": ReplyRow(502, "", "UpstreamFailure"),
    "upgrade_refused": ReplyRow(502, "request upgrade failed", "UpstreamFailure"),
    "upstream_failed": ReplyRow(503, "upstream call failed", "UpstreamFailure"),
    "unresolved": ReplyRow(503, "backends required DNS resolution which failed", "UpstreamFailure"),
    "processing_failed": ReplyRow(503, "processing failed", "Internal"),
    "destination_refused": ReplyRow(403, "destination not allowed", "Authorization"),
    "no_healthy_backends": ReplyRow(503, "no healthy backends", "NoHealthyBackend"),
    "request_timeout": ReplyRow(504, "request timeout", "Timeout"),
    "upstream_timeout": ReplyRow(504, "upstream call timeout", "Timeout"),
}

# What policies answer, by the same form. Those with fields of their own are made in headgate.policy.
FORBIDDEN = ReplyRow(403, "", "Authorization")
CSRF_FAILED = ReplyRow(403, "CSRF validation failed", "Internal")
NO_PREFIX = ReplyRow(500, "failed to apply filters: the route matched no path prefix", "Internal")
CARD_FAILED = ReplyRow(503, "processing failed", "UpstreamFailure")
NO_BODY = ReplyRow(500, "failed to apply filters: the body expression failed", "Internal")
RATE_LIMITED = ReplyRow(429, "rate limit exceeded", "RateLimit")
RATE_LIMIT_FAILED = ReplyRow(500, "rate limit failed", "RateLimit")
GUARD_FAILED = ReplyRow(503, "failed to process LLM request: prompt guard failed", "Guardrail")
GUARD_REFUSED = ReplyRow(403, "The request was rejected due to inappropriate content", "Guardrail")
POLICY_ROWS: tuple[tuple[str, ReplyRow, str], ...] = (
    ("authorization", FORBIDDEN, "a rule refuses the request"),
    (
        "extAuthz",
        ReplyRow(403, "external authorization failed", "ExtAuth"),
        "the service refuses the request and says no more, or fails; `denyWithStatus` gives another status",
    ),
    (
        "extAuthz",
        ReplyRow(413, "external authorization failed", "ExtAuth"),
        "the body is longer than `includeRequestBody` says",
    ),
    ("csrf", CSRF_FAILED, "a request of a strange site"),
    ("localRateLimit", RATE_LIMITED, "no token left; with the three `x-ratelimit-` fields"),
    ("localRateLimit", RATE_LIMIT_FAILED, "the shared store fails, and `failureMode: deny`"),
    (
        "remoteRateLimit",
        ReplyRow(429, "", "RateLimit"),
        "the service says so; its text and headers, and the three `x-ratelimit-` fields",
    ),
    ("extProc", ReplyRow(500, "ext_proc failed", "ExtProc"), "the processor fails; the reason follows"),
    (
        "extProc",
        ReplyRow(413, "ext_proc failed", "ExtProc"),
        "the body is longer than what may be gathered for the processor; the reason follows",
    ),
    ("remoteRateLimit", RATE_LIMIT_FAILED, "the service fails, and `failClosed`"),
    ("promptGuard", GUARD_REFUSED, "a guard refuses a prompt or a reply; status, text and headers can be configured"),
    ("promptGuard", GUARD_FAILED, "a guard cannot tell, and does not fail open"),
    ("urlRewrite, requestRedirect", NO_PREFIX, "a prefix is to be replaced and the route matched none"),
    ("directResponse", NO_BODY, "`bodyExpression` has no value"),
    ("a2a", CARD_FAILED, "the agent card cannot be rewritten; the reason follows"),
    ("jwtAuth", ReplyRow(401, refusals.UNAUTHORIZED.decode(), refusals.REASON), "no token, or one that does not count"),
    ("apiKey", ReplyRow(401, refusals.NO_API_KEY, "APIKeyAuth"), "no key"),
    ("apiKey", ReplyRow(401, refusals.BAD_API_KEY, "APIKeyAuth"), "an unknown key, or several"),
    ("apiKey", ReplyRow(401, refusals.EXPIRED_KEY, "APIKeyAuth"), "a virtual key behind its time"),
    ("apiKey", ReplyRow(401, refusals.REVOKED_KEY, "APIKeyAuth"), "a virtual key that was revoked"),
    ("apiKey", ReplyRow(403, refusals.KEY_ELSEWHERE, "Authorization"), "`allowedRoutes` of a virtual key"),
    ("apiKey", ReplyRow(403, refusals.UNPRICED, "Authorization"), "money can be limited only where prices are known"),
    (
        "apiKey",
        ReplyRow(429, "", "RateLimit"),
        "a limit of a virtual key or its team; the text says which, and when it ends, as `retry-after` does",
    ),
    (
        "apiKey",
        ReplyRow(503, refusals.STORELESS, "RateLimit"),
        "a virtual key with limits, without the store that gateways share, and `failureMode: deny`",
    ),
    ("backendAuth", ReplyRow(500, "backend authentication failed", "Internal"), "a credential cannot be had"),
    (
        "backendAuth",
        ReplyRow(400, "invalid request", "InvalidRequest"),
        "the client has no token, or one that is not taken",
    ),
    (
        "oidc",
        ReplyRow(400, "oidc failure: invalid callback", "Oidc"),
        "what a browser brings does not belong to a login",
    ),
    ("oidc", ReplyRow(401, "oidc failure: the provider's metadata cannot be fetched", "Oidc"), "no provider to go to"),
    (
        "oidc",
        ReplyRow(500, "oidc failure: the token exchange failed", "Oidc"),
        "what the provider answers cannot be used",
    ),
    ("basicAuth", ReplyRow(401, refusals.NO_BASIC, "BasicAuth"), "no credentials; 407 where they are for a proxy"),
    ("basicAuth", ReplyRow(401, refusals.BAD_BASIC, "BasicAuth"), "credentials that do not count"),
    ("basicAuth", ReplyRow(429, refusals.TOO_MANY_LOGINS, "BasicAuth"), "too many passwords wait; with `retry-after`"),
)
CAUSES: dict[str, str] = {
    "invalid_request": "no host",
    "method_not_allowed": "CONNECT where there are no tunnels, any other method where there is nothing else",
    "bind_not_found": "CONNECT to a port that no listener serves",
    "invalid_backend": "CONNECT to a backend that is neither a host, a service nor dynamic",
    "doubtful_path": "servers may read the path as one that the route lacks or that another route protects; or "
    "`pathNormalization: refuse`",
    "misdirected": "the host is not one of the TLS listener that was chosen",
    "listener_not_found": "no listener for the host",
    "route_not_found": "no route for the request, none in a route group, or no such group",
    "too_many_hops": "a request was handed on to internal ports too often: they lead to each other",
    "body_too_large": "`buffer.request`, or a body that an MCP backend has to read; LLM backends say it in JSON",
    "no_valid_backends": "the route has no backend with a weight",
    "internal": "a fault of ours, also in a policy step",
    "upstream_protocol": "the backend's answer is no HTTP, or breaks off while it is held back",
    "response_too_large": "`buffer.response`",
    "upgrade_refused": "the backend switched to another protocol than the one asked for",
    "upstream_failed": "connect refused, reset, TLS failure; no descriptor or place in the queue left",
    "unresolved": "no address can be found for the name of the backend",
    "processing_failed": "the expression `target` of a dynamic backend has no value `host:port`",
    "destination_refused": "a dynamic backend does not allow this destination: its name, port or address",
    "no_healthy_backends": "a service without endpoints",
    "request_timeout": "`timeout.requestTimeout`",
    "upstream_timeout": "`timeout.backendRequestTimeout`, or a connect time-out",
}
# What the HTTP/1.1 codec and the time-outs of a client connection refuse.
REFUSALS: tuple[tuple[int, str], ...] = (
    (400, "a request or body that is malformed, ambiguous in its framing or cut off; HTTP/1.1 without `host`"),
    (408, "a head or body that does not come in time: `request head timeout`, `request body timeout`"),
    (414, "a request line above 16 KiB"),
    (417, "an `expect` other than `100-continue`"),
    (
        431,
        "a head above 64 KiB (HTTP/2: above `frontendPolicies.http.http2MaxHeaderSize`, 16 KiB),"
        " more fields than its `http1MaxHeaders`, trailers above 16 KiB",
    ),
    (501, "a transfer coding beside `chunked`"),
    (505, "another version than HTTP/1.0 or HTTP/1.1"),
)
# Every value of the label `reason` of requests, and when a request has it. All answers of the gateway have one.
REASONS: dict[str, str] = {
    "Upstream": "the answer is the backend's (in the access log: no `reason`)",
    "DirectResponse": "`directResponse`, a redirect, a CORS preflight, a list of models",
    "NotFound": "no listener or no route",
    "NoHealthyBackend": "no endpoint that can be used",
    "InvalidRequest": "a request that cannot be served as it is: 400, 405, 413, 421",
    "JwtAuth": "refused by `jwtAuth` or `mcpAuthentication`",
    "Oidc": "answered by `oidc`",
    "BasicAuth": "refused by `basicAuth`",
    "APIKeyAuth": "refused by `apiKey`",
    "Authorization": "refused by `authorization`, or a destination that a dynamic backend may not reach",
    "ExtAuth": "refused by `extAuthz`, or its service cannot tell",
    "ExtProc": "answered by an external processor, or it has failed",
    "RateLimit": "refused by a limit",
    "Guardrail": "refused by a guardrail, or it cannot tell",
    "Timeout": "a time-out on the way to the backend's answer",
    "UpstreamFailure": "no answer of the backend, or none that can be used",
    "MCP": "answered by the MCP side of the gateway",
    "Internal": "every other answer of the gateway's own, `csrf` and `backendAuth` among them",
}
TEXT_PLAIN = (b"content-type", b"text/plain")
# Says of a limit on tokens of models that it is one.
TOKENS_LIMITED = Reply(
    RATE_LIMITED.status, RATE_LIMITED.body.encode(), (TEXT_PLAIN, (b"x-ratelimit-resource", b"tokens")),
    RATE_LIMITED.reason,
)  # fmt: skip


@lru_cache(maxsize=256)
def reply_of(row: ReplyRow) -> Reply:
    """Return the engine's form of a row. Routes share it."""
    headers = (TEXT_PLAIN,) if row.body else ()
    return Reply(row.status, row.body.encode(), headers, row.reason)


def engine_replies() -> dict[str, Reply]:
    """Return the whole table for Worker.set_replies()."""
    return {name: reply_of(row) for name, row in REPLIES.items()}


def page() -> str:
    """Return docs/errors.md."""
    lines = [
        "# Answers of the gateway's own",
        "",
        "Made from the tables in `headgate.pipeline.replies`. Bodies are plain text or JSON. To gRPC calls",
        "the same failure is status 200 with `grpc-status` and `grpc-message`. Response policies apply to these too.",
        "On paths of models they are the [error object of the client's format](llm.md#errors) with the same text.",
        "",
        "| status | body | `reason` label | cause |",
        "|---|---|---|---|",
    ]
    rows = [(row, CAUSES[name]) for name, row in REPLIES.items()]
    rows += [(row, f"`{policy}`: {cause}") for policy, row, cause in POLICY_ROWS]
    for row, cause in sorted(rows, key=lambda item: (item[0].status, item[0].body)):
        body = f"`{row.body}`" if row.body else "empty"
        lines.append(f"| {row.status} | {body} | {row.reason} | {cause} |")
    lines += [
        "",
        "## Reasons",
        "",
        "Every value of the label `reason` in metrics, and of the field `reason` in the access log. The field `error`",
        "beside it has the text of an answer that the gateway gives by itself with a status of 400 and above.",
        "",
        "| `reason` | when |",
        "|---|---|",
    ]
    lines += [f"| {name} | {when} |" for name, when in REASONS.items()]
    lines += [
        "",
        "## Before there is a request",
        "",
        "Bytes that make no request are answered with the reason as plain text, and the connection is closed. Policies",
        "see nothing of it; `gw_downstream_refused_total` counts it; the log tells it at level debug, or in the line",
        "of the request whose body it was.",
        "",
        "| status | cause |",
        "|---|---|",
    ]
    lines += [f"| {status} | {cause} |" for status, cause in REFUSALS]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
