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
        "the service refused the request without a status, or failed; `denyWithStatus` sets another status",
    ),
    (
        "extAuthz",
        ReplyRow(413, "external authorization failed", "ExtAuth"),
        "the body is larger than `includeRequestBody` allows",
    ),
    ("csrf", CSRF_FAILED, "a request from another site"),
    ("localRateLimit", RATE_LIMITED, "the limit is reached; with the three `x-ratelimit-` headers"),
    ("localRateLimit", RATE_LIMIT_FAILED, "the shared store failed, with `failureMode: deny`"),
    (
        "remoteRateLimit",
        ReplyRow(429, "", "RateLimit"),
        "the service refused it; with its text and headers, and the three `x-ratelimit-` headers",
    ),
    ("extProc", ReplyRow(500, "ext_proc failed", "ExtProc"), "the processor failed; the reason follows"),
    (
        "extProc",
        ReplyRow(413, "ext_proc failed", "ExtProc"),
        "the body is larger than the buffer for the processor; the reason follows",
    ),
    ("remoteRateLimit", RATE_LIMIT_FAILED, "the service failed, with `failureMode: failClosed`"),
    (
        "promptGuard", GUARD_REFUSED,
        "a guard refused a prompt or a completion; status, text and headers are configurable",
    ),
    ("promptGuard", GUARD_FAILED, "a guard failed, and is not set to fail open"),
    ("urlRewrite, requestRedirect", NO_PREFIX, "a prefix should be replaced, but the route did not match by prefix"),
    ("directResponse", NO_BODY, "`bodyExpression` has no value"),
    ("a2a", CARD_FAILED, "the agent card cannot be rewritten; the reason follows"),
    ("jwtAuth", ReplyRow(401, refusals.UNAUTHORIZED.decode(), refusals.REASON), "no token, or an invalid one"),
    ("apiKey", ReplyRow(401, refusals.NO_API_KEY, "APIKeyAuth"), "no key"),
    ("apiKey", ReplyRow(401, refusals.BAD_API_KEY, "APIKeyAuth"), "an unknown key, or several keys"),
    ("apiKey", ReplyRow(401, refusals.EXPIRED_KEY, "APIKeyAuth"), "an expired virtual key"),
    ("apiKey", ReplyRow(401, refusals.REVOKED_KEY, "APIKeyAuth"), "a revoked virtual key"),
    (
        "apiKey", ReplyRow(403, refusals.KEY_ELSEWHERE, "Authorization"),
        "the route is not in `allowedRoutes` of the virtual key",
    ),
    ("apiKey", ReplyRow(403, refusals.UNPRICED, "Authorization"), "a limit in dollars needs a price for the model"),
    (
        "apiKey",
        ReplyRow(429, "", "RateLimit"),
        "a limit of a virtual key or its team is reached; the text says which, and when it ends, like `retry-after`",
    ),
    (
        "apiKey",
        ReplyRow(503, refusals.STORELESS, "RateLimit"),
        "the store that gateways share is not reachable, with `failureMode: deny`",
    ),
    ("backendAuth", ReplyRow(500, "backend authentication failed", "Internal"), "the credential could not be obtained"),
    (
        "backendAuth",
        ReplyRow(400, "invalid request", "InvalidRequest"),
        "the client sent no token, or one that is not accepted",
    ),
    (
        "oidc",
        ReplyRow(400, "oidc failure: invalid callback", "Oidc"),
        "the request does not belong to a login of this browser",
    ),
    (
        "oidc", ReplyRow(401, "oidc failure: the provider's metadata cannot be fetched", "Oidc"),
        "the provider cannot be reached",
    ),
    (
        "oidc",
        ReplyRow(500, "oidc failure: the token exchange failed", "Oidc"),
        "the provider's response cannot be used",
    ),
    ("basicAuth", ReplyRow(401, refusals.NO_BASIC, "BasicAuth"), "no credentials; 407 if they are for a proxy"),
    ("basicAuth", ReplyRow(401, refusals.BAD_BASIC, "BasicAuth"), "invalid credentials"),
    (
        "basicAuth", ReplyRow(429, refusals.TOO_MANY_LOGINS, "BasicAuth"),
        "too many passwords are being checked; with `retry-after`",
    ),
)
CAUSES: dict[str, str] = {
    "invalid_request": "no host",
    "method_not_allowed": "CONNECT on a port without tunnels, or another method on a port that only accepts CONNECT",
    "bind_not_found": "CONNECT to a port that no listener serves",
    "invalid_backend": "CONNECT to a backend that is neither a host, a service nor dynamic",
    "doubtful_path": "servers could read the path as one outside the route, or as one that another route protects; or "
    "`pathNormalization: refuse`",
    "misdirected": "the host does not belong to the listener that the TLS handshake selected",
    "listener_not_found": "no listener for the host",
    "route_not_found": "no route for the request, none in a route group, or no such group",
    "too_many_hops": "a request was forwarded to internal ports too often: they form a loop",
    "body_too_large": "the body exceeds `buffer.request`, or the limit of an MCP backend; LLM backends answer in JSON",
    "no_valid_backends": "the route has no backend with a weight",
    "internal": "an internal error, also in a policy",
    "upstream_protocol": "the backend's response is not valid HTTP, or breaks off while it is buffered",
    "response_too_large": "`buffer.response`",
    "upgrade_refused": "the backend switched to another protocol than the one asked for",
    "upstream_failed": "connection refused or reset, TLS failure; no file descriptor or no place in the queue left",
    "unresolved": "no address can be found for the name of the backend",
    "processing_failed": "the expression `target` of a dynamic backend has no value `host:port`",
    "destination_refused": "a dynamic backend does not allow this destination: its name, port or address",
    "no_healthy_backends": "a service without endpoints",
    "request_timeout": "`timeout.requestTimeout`",
    "upstream_timeout": "`timeout.backendRequestTimeout`, or a connect timeout",
}
# What the HTTP/1.1 codec and the time-outs of a client connection refuse.
REFUSALS: tuple[tuple[int, str], ...] = (
    (400, "a request or body that is malformed, ambiguous in its framing or cut off; HTTP/1.1 without `host`"),
    (408, "a head or body that does not arrive in time: `request head timeout`, `request body timeout`"),
    (414, "a request line above 16 KiB"),
    (417, "an `expect` other than `100-continue`"),
    (
        431,
        "a head above 64 KiB (HTTP/2: above `frontendPolicies.http.http2MaxHeaderSize`, 16 KiB),"
        " more fields than its `http1MaxHeaders`, trailers above 16 KiB",
    ),
    (501, "a transfer coding other than `chunked`"),
    (505, "a version other than HTTP/1.0 and HTTP/1.1"),
)
# Every value of the label `reason` of requests, and when a request has it. All answers of the gateway have one.
REASONS: dict[str, str] = {
    "Upstream": "the response came from the backend (the access log has no `reason`)",
    "DirectResponse": "`directResponse`, a redirect, a CORS preflight, a list of models",
    "NotFound": "no listener or no route",
    "NoHealthyBackend": "no endpoint that can be used",
    "InvalidRequest": "a request that cannot be served: 400, 405, 413, 421",
    "JwtAuth": "refused by `jwtAuth` or `mcpAuthentication`",
    "Oidc": "answered by `oidc`",
    "BasicAuth": "refused by `basicAuth`",
    "APIKeyAuth": "refused by `apiKey`",
    "Authorization": "refused by `authorization`, or a destination that a dynamic backend may not reach",
    "ExtAuth": "refused by `extAuthz`, or its service failed",
    "ExtProc": "answered by an external processor, or the processor failed",
    "RateLimit": "refused by a limit",
    "Guardrail": "refused by a guardrail, or the guardrail failed",
    "Timeout": "a timeout while waiting for the backend's response",
    "UpstreamFailure": "no response from the backend, or an unusable one",
    "MCP": "answered by the gateway's MCP server",
    "Internal": "every other response of the gateway, including `csrf` and `backendAuth`",
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
        "# Errors and other responses of the gateway",
        "",
        "These are the responses that the gateway makes itself. For example, a request without a route gets:",
        "",
        "```text",
        "HTTP/1.1 404 Not Found",
        "content-type: text/plain",
        "",
        "route not found",
        "```",
        "",
        "- Bodies are plain text or JSON.",
        "- gRPC calls get status 200 with the same failure in `grpc-status` and `grpc-message`.",
        "- LLM paths get the [error object of the client's format](llm.md#errors) with the same text.",
        "- Response policies apply to these responses too.",
        "",
        "This page is generated from the tables in `headgate.pipeline.replies`.",
        "",
        "## Responses",
        "",
        "| Status | Body | `reason` label | Cause |",
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
        "These are the values of the label `reason` in metrics, and of the field `reason` in the access log. The field",
        "`error` in the log has the text of the gateway's own responses with a status of 400 and above.",
        "",
        "| `reason` | Meaning |",
        "|---|---|",
    ]
    lines += [f"| {name} | {when} |" for name, when in REASONS.items()]
    lines += [
        "",
        "## Errors before there is a request",
        "",
        "If the received bytes are not a valid request, the response has the reason as plain text, and the connection",
        "is closed. Policies do not apply. `gw_downstream_refused_total` counts these errors. They are logged at level",
        "debug, or in the line of the request if they are in its body.",
        "",
        "| Status | Cause |",
        "|---|---|",
    ]
    lines += [f"| {status} | {cause} |" for status, cause in REFUSALS]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
