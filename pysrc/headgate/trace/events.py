"""The messages of a trace, one row per type."""

from __future__ import annotations

import json
from typing import Any, Final

Json = dict[str, Any]

INFO, SUCCESS, WARN, ERROR = "info", "success", "warn", "error"

# Message type to its fields; `policyEvent.details` is a text or a map.
TYPES: Final[dict[str, tuple[str, ...]]] = {
    "requestStarted": (),
    "cel": ("expr", "requestState", "result"),
    "requestSnapshot": ("stage", "requestState"),
    "responseSnapshot": ("stage", "requestState"),
    "bodySnapshot": ("stage", "body"),
    "routeSelection": ("selectedRoute", "evaluatedRoutes"),
    "policySelection": ("phase", "effectivePolicy"),
    "policy": ("kind", "result"),
    "policyEvent": ("kind", "details"),
    "authorizationResult": ("rules", "result"),
    "backendCallStart": ("target",),
    "backendCallResult": ("status", "error"),
    "llmRouteResolved": ("provider", "routeType"),
    "llmStreamingTranslation": ("provider", "inputFormat", "upstreamRouteType", "streamFormat"),
    "traceSampling": ("decision",),
    "llmRequestDetected": ("provider", "inputFormat", "upstreamRouteType", "requestModel", "streaming"),
    "requestFinished": ("status", "error"),
}

# Step name to the `kind` of its events and the label of its snapshots.
KINDS: Final[dict[str, tuple[str, str]]] = {
    "cors": ("cors", "cors"),
    "oidc": ("oidc", "oidc"),
    "jwtAuth": ("jwt", "jwt auth"),
    "mcpAuthentication": ("mcp_authentication", "mcp authentication"),
    "basicAuth": ("basic_auth", "basic auth"),
    "apiKey": ("api_key", "api key"),
    "extAuthz": ("ext_auth", "ext authz"),
    "extProc": ("ext_proc", "ext proc"),
    "authorization": ("authorization", "authorization"),
    "localRateLimit": ("local_rate_limit", "local rate limit"),
    "remoteRateLimit": ("remote_rate_limit", "remote rate limit"),
    "buffer": ("buffer", "buffer"),
    "transformations": ("transformation", "transformation"),
    "csrf": ("csrf", "csrf"),
    "requestHeaderModifier": ("request_header_modifier", "request header modifier"),
    "responseHeaderModifier": ("response_header_modifier", "response header modifier"),
    "urlRewrite": ("url_rewrite", "url rewrite"),
    "requestRedirect": ("request_redirect", "request redirect"),
    "delay": ("delay", "delay"),
    "directResponse": ("direct_response", "direct response"),
    "requestMirror": ("request_mirror", "request mirror"),
    "backendAuth": ("backend_auth", "backend auth"),
}


def kind_of(name: str) -> tuple[str, str]:
    """Return the `kind` and the snapshot label of a step; a step that is not in the table uses its own name."""
    found = KINDS.get(name)
    if found is None:
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()
        return words.replace(" ", "_"), words
    return found


def stage_of(name: str, phase: str) -> str:
    """Return the stage of the snapshot after a step: the gateway phase calls `jwt` what routes call `jwt auth`."""
    words = kind_of(name)[1]
    if phase == "route" or words.startswith(f"{phase} "):
        return words
    return f"{phase} {'jwt' if words == 'jwt auth' and phase == 'gateway' else words}"


def severity_of_status(status: int | None, error: str | None) -> str:
    """Return the severity of a call or request with this status and error."""
    if error is not None or status is None or status >= 500:
        return ERROR
    return WARN if status >= 400 else INFO


def frame(message: Json, severity: str, end_us: int, start_us: int | None = None, scope: tuple[str, ...] = ()) -> bytes:
    """Return an event as one line of compact JSON, no newline. Times are in microseconds since the request began."""
    event: Json = {"eventStart": start_us, "eventEnd": end_us, "severity": severity}
    if scope:
        event["scope"] = list(scope)
    event["message"] = message
    try:
        return json.dumps(event, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return json.dumps({"type": "serialization_error", "error": str(error)}, separators=(",", ":")).encode()
