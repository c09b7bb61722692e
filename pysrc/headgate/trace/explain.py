"""Descriptions of what a step did. They are derived from the request after the step, so steps need no trace code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headgate_engine.context.redact import redacted
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.plan.step import Step

Explanation = Mapping[str, Any] | str
MAX_TEXT: Final = 200


class Skip(str):
    """The reason why a step did nothing."""


def explain(step: Step, ctx: RequestContext, reply: Reply | None, before: str) -> Explanation:
    """Return the details of a step that ran, a Skip if it did nothing. `before` is the target before the step."""
    name = step.name
    teller = EXPLAINERS.get(name)
    told = None if teller is None else teller(ctx, reply, before)
    if reply is None:
        return "applied" if told is None else told
    found = {"status": reply.status, "reason": reply.reason}
    text = reply.body[:MAX_TEXT].decode("utf-8", "replace")
    if text and reply.status >= 400:
        found["answer"] = text
    return {**found, **({} if told is None else {"details": told})}


def _cors(ctx: RequestContext, _reply: Reply | None, _before: str) -> Explanation | None:
    origin = ctx.request.get("origin")
    if origin is None:
        return Skip("request has no Origin header")
    allowed = any(name == b"access-control-allow-origin" for name, _ in ctx.added_response_headers)
    return f"origin {origin} is {'allowed' if allowed or _reply is not None else 'not allowed'}"


def _jwt(ctx: RequestContext, reply: Reply | None, _before: str) -> Explanation | None:
    if ctx.jwt is None:
        return "rejected request" if reply is not None else Skip("no token was presented")
    return {"subject": ctx.jwt.get("sub"), "issuer": ctx.jwt.get("iss")}


def _basic(ctx: RequestContext, reply: Reply | None, _before: str) -> Explanation | None:
    if ctx.basic_user is None:
        return "rejected request" if reply is not None else Skip("no credentials were presented")
    return {"user": ctx.basic_user}


def _api_key(ctx: RequestContext, reply: Reply | None, _before: str) -> Explanation | None:
    if ctx.api_key is None:
        return "rejected request" if reply is not None else Skip("no key was presented")
    return "key is known"


def _rate(ctx: RequestContext, reply: Reply | None, _before: str) -> Explanation | None:
    numbers = {}
    for name, value in ctx.added_response_headers:
        if name.startswith(b"x-ratelimit-"):
            numbers[name.decode().removeprefix("x-ratelimit-")] = int(value)
    return {"allowed": reply is None, **numbers} if numbers else Skip("no limit applies")


def _target(ctx: RequestContext, _reply: Reply | None, before: str) -> Explanation | None:
    after = f"{ctx.authority}{ctx.target}"
    return Skip("nothing to change") if after == before else f"{redacted(before)} -> {redacted(after)}"


def _failures(ctx: RequestContext, _reply: Reply | None, _before: str) -> Explanation | None:
    failed = [str(value) for key, value in ctx.log_field_items if key == "transformation.failed"]
    return {"failed": failed} if failed else None


def _a2a(ctx: RequestContext, _reply: Reply | None, _before: str) -> Explanation | None:
    method = dict(ctx.log_field_items).get("a2a.method")
    return Skip("not a call to an agent") if method is None else {"method": method}


def _buffer(ctx: RequestContext, _reply: Reply | None, _before: str) -> Explanation | None:
    return None if ctx.request_body is None else {"bytes": len(ctx.request_body)}


EXPLAINERS: Final[dict[str, Callable[[RequestContext, Reply | None, str], Explanation | None]]] = {
    "cors": _cors,
    "oidc": _jwt,
    "jwtAuth": _jwt,
    "mcpAuthentication": _jwt,
    "basicAuth": _basic,
    "apiKey": _api_key,
    "localRateLimit": _rate,
    "urlRewrite": _target,
    "transformations": _failures,
    "buffer": _buffer,
    "a2a": _a2a,
}
