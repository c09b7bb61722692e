"""Authorization services that are asked with an HTTP request."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from headgate.ir.policy.ext_authz import AuthzHttp, ExtAuthz
from headgate.policy.environment import Environment
from headgate.policy.ext_authz.decision import REASON, AuthzDecision, refusal
from headgate.policy.ext_authz.failure import ServiceFailure
from headgate.policy.ext_authz.seen import SeenRequest
from headgate.policy.header_values import FRAMING, REPLACE_OR_ADD, FieldEdit, usable_edit
from headgate.policy.remote import HttpPolicyService
from headgate_engine.context.request import Reply, RequestContext, answered_context
from headgate_engine.expr.functions import json_text
from headgate_engine.expr.values import EvaluationError
from headgate_engine.link.client import CallError, ClientResponse

DEFAULT_SENT: Final = ("authorization",)
MAX_ANSWER: Final = 1024 * 1024
ALLOWED: Final = 200
CONNECT: Final = "CONNECT"
REDIRECTED: Final = 302
FORBIDDEN: Final = 403
# Refusals that ask the client to log in.
LOGIN: Final = (401, 403)


class HttpAuthorizer:
    """Asks the service about requests, and reads its decisions."""

    def __init__(self, policy: ExtAuthz, env: Environment, phase: str) -> None:
        self._service = HttpPolicyService(policy.service, env, "ExtAuthz")
        self._timeout_s = policy.timeout_ms / 1000
        self._seen = SeenRequest(DEFAULT_SENT if policy.sent is None else policy.sent, policy.body)
        http = policy.http or AuthzHttp()
        self._path, self._redirect, self._body = (
            None if text is None else env.program(text, phase) for text in (http.path, http.redirect, http.body)
        )
        self._added = [(name, env.program(text, phase)) for name, text in http.added]
        self._kept = http.kept
        self._metadata = [(name, env.program(text, "answer")) for name, text in http.metadata]

    async def decide(self, ctx: RequestContext) -> AuthzDecision:
        """Return the decision. Raises ServiceFailure."""
        try:
            opens_tunnel = ctx.method == CONNECT
            own = "/" if opens_tunnel else ctx.target
            target = own if self._path is None else _path(self._path.evaluate(ctx))
            body = self._seen.content(ctx) if self._body is None else _content(self._body.evaluate(ctx))
        except EvaluationError:
            return AuthzDecision(reply=refusal(FORBIDDEN))
        headers = list(self._seen.fields(ctx, {}).items())
        for name, program in self._added:
            value = program.header_value(ctx)
            if value is not None:
                headers = [field for field in headers if field[0] != name]
                headers.append((name, value.decode("utf-8", "surrogateescape")))
        try:
            async with asyncio.timeout(self._timeout_s):
                # CONNECT would ask the service for a tunnel.
                method = "GET" if opens_tunnel else ctx.method
                answer = await self._service.request(ctx, method, target, headers, body)
                try:
                    content = await answer.read(MAX_ANSWER)
                finally:
                    await answer.aclose()
        except TimeoutError:
            raise ServiceFailure(f"no answer in {self._timeout_s:g} s") from None
        except (CallError, ValueError, OSError) as error:
            raise ServiceFailure(str(error) or type(error).__name__) from None
        return self._decision(ctx, answer, content)

    def _decision(self, ctx: RequestContext, answer: ClientResponse, content: bytes) -> AuthzDecision:
        metadata = self._told(ctx, answer)
        if answer.status == ALLOWED:
            joined: dict[str, str] = {}
            for spelled, value in answer.headers:
                name = spelled.lower()
                if name in self._kept:
                    joined[name] = f"{joined[name]}, {value}" if name in joined else value
            edits = (FieldEdit(REPLACE_OR_ADD, name, value) for name, value in joined.items())
            return AuthzDecision(edits=tuple(filter(usable_edit, edits)), metadata=metadata)
        if answer.status in LOGIN and self._redirect is not None:
            return AuthzDecision(reply=self._redirection(ctx), metadata=metadata)
        fields = tuple(
            (name.lower().encode("ascii"), value.encode("utf-8", "surrogateescape"))
            for name, value in answer.headers
            if name.lower() not in FRAMING
        )
        if not 200 <= answer.status <= 599:
            raise ServiceFailure(f"the service answered {answer.status}")
        return AuthzDecision(reply=Reply(answer.status, content, fields, REASON), metadata=metadata)

    def _told(self, ctx: RequestContext, answer: ClientResponse) -> dict[str, object]:
        if not self._metadata:
            return {}
        seen = answered_context(ctx, answer.head)
        found: dict[str, object] = {}
        for name, program in self._metadata:
            with contextlib.suppress(EvaluationError):
                found[name] = program.evaluate(seen)
        return found

    def _redirection(self, ctx: RequestContext) -> Reply:
        assert self._redirect is not None
        with contextlib.suppress(EvaluationError, ValueError):
            location = self._redirect.evaluate(ctx)
            if isinstance(location, str) and location:
                return Reply(REDIRECTED, b"", ((b"location", location.encode()),), REASON)
        return refusal(FORBIDDEN)


def _path(value: object) -> str:
    if not isinstance(value, str) or not value.startswith("/"):
        raise EvaluationError("not a path")
    return value


def _content(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.encode("utf-8", "replace") if isinstance(value, str) else json_text(value).encode()


