"""`mcpAuthentication`: the documents that clients find their way with, registration, and tokens."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable
from typing import Any, Final
from urllib.parse import urlsplit

from headgate.dialect import oauth
from headgate.ir.policy.document_source import DocumentSource
from headgate.ir.policy.mcp_authentication import McpAuthentication
from headgate.policy.environment import Environment
from headgate.policy.identity import JSON, REASON, UNAUTHORIZED, JwtPolicy
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.client import CallError
from headgate_engine.plan.step import WAIT_BODY_VERDICT, AsyncStep, PythonStep, Step

logger = logging.getLogger("headgate.oauth")

CORS: Final = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, OPTIONS"),
    (b"access-control-allow-headers", b"content-type"),
)
REGISTRATION_CORS: Final = (CORS[0], (b"access-control-allow-methods", b"POST, OPTIONS"), CORS[2])
WELL_KNOWN: Final = "/.well-known/"
FRESH_SECONDS: Final = 60.0
CALL_SECONDS: Final = 10.0
MAX_DOCUMENT: Final = 256 * 1024
MAX_REGISTRATION: Final = 64 * 1024
BODY_UNREAD, BODY_WHOLE = 0, 1


class McpAuthenticationPolicy:
    """One policy in one worker."""

    def __init__(self, policy: McpAuthentication, env: Environment) -> None:
        self._policy = policy
        self._env = env
        self._more: dict[str, Any] = json.loads(policy.resource_metadata)
        [provider] = policy.jwt.providers
        self._issuer = provider.issuer
        self._audience = provider.audiences[0] if provider.audiences else None
        self._document: dict[str, Any] | None = None
        self._until = 0.0
        self._fetching: asyncio.Task[None] | None = None
        resource = self._more.get("resource")
        parts = urlsplit(resource) if isinstance(resource, str) else None
        self._origin = f"{parts.scheme}://{parts.netloc}" if parts is not None and parts.netloc else None
        self.steps: tuple[Step, ...] = (
            PythonStep("mcpAuthentication body", self.want_body),
            AsyncStep("mcpAuthentication documents", self.document),
            JwtPolicy(policy.jwt, env, self.challenge).step,
        )

    # -- tokens --------------------------------------------------------------------------------------------------------
    def challenge(self, ctx: RequestContext) -> Reply:
        """Return the 401 that leads a client to the metadata (RFC 9728 section 5.1)."""
        origin = external(ctx) if self._origin is None else self._origin
        where = f'Bearer resource_metadata="{origin}{oauth.PROTECTED_RESOURCE}{ctx.path}"'
        fields = (JSON, (b"www-authenticate", where.encode("ascii", "replace")))
        return Reply(401, UNAUTHORIZED, fields, REASON)

    # -- documents -----------------------------------------------------------------------------------------------------
    def want_body(self, ctx: RequestContext) -> int | None:
        """Wait for the body of a registration or token request."""
        if not ctx.path.startswith(WELL_KNOWN) or ctx.body_state != BODY_UNREAD:
            return None
        proxied = self._policy.token is not None and ctx.path.endswith(oauth.TOKEN)
        if not proxied and not ctx.path.endswith(oauth.REGISTRATION):
            return None
        ctx.body_limit = MAX_REGISTRATION
        return WAIT_BODY_VERDICT

    def document(self, ctx: RequestContext) -> Awaitable[Reply | None] | Reply | None:
        """Answer what needs no token; None for everything else."""
        path = ctx.path
        if not path.startswith(WELL_KNOWN):
            return None
        if oauth.beneath(path, oauth.PROTECTED_RESOURCE):
            return self._resource(ctx)
        if not oauth.beneath(path, oauth.AUTHORIZATION_SERVER):
            return None
        if path.endswith(oauth.REGISTRATION):
            return self._register(ctx)
        if self._policy.authorize is not None and path.endswith(oauth.AUTHORIZE):
            query = oauth.without_resource(ctx.target.partition("?")[2])
            return Reply(302, b"", ((b"location", f"{self._policy.authorize}?{query}".encode()),), "DirectResponse")
        if self._policy.token is not None and path.endswith(oauth.TOKEN):
            return self._token(ctx, self._policy.token)
        return self._server(external(ctx) + path)

    def _resource(self, ctx: RequestContext) -> Reply:
        resource = external(ctx) + ctx.path.removeprefix(oauth.PROTECTED_RESOURCE)
        found = oauth.protected_resource(resource, self._issuer, self._policy.kind, self._more)
        return Reply(200, json.dumps(found).encode(), (JSON, *CORS), "DirectResponse")

    async def _server(self, url: str) -> Reply:
        try:
            document = await self._metadata()
            found = oauth.authorization_server(document, self._policy.kind, url, self._audience)
        except oauth.ProviderError as error:
            logger.warning("metadata cannot be served", extra={"issuer": self._issuer, "error": str(error)})
            return Reply(500, b"", (), "Internal")
        return Reply(200, json.dumps(found).encode(), (JSON, *CORS), "DirectResponse")

    async def _metadata(self) -> dict[str, Any]:
        """Return the provider's document, fetched at most once a minute; an old one is better than none."""
        if time.monotonic() >= self._until:
            if self._fetching is None:
                self._fetching = self._env.spawn(f"oauth metadata {self._issuer}", self._fetch())
            await asyncio.wait([self._fetching])
        if self._document is None:
            raise oauth.ProviderError("the provider's metadata cannot be fetched")
        return self._document

    async def _fetch(self) -> None:
        try:
            status, body, _ = await self._call(self._policy.metadata, "GET", None)
            found = json.loads(body)
            if status != 200 or not isinstance(found, dict):
                raise ValueError(f"status {status}" if status != 200 else "not an object")
            self._document = found
            self._until = time.monotonic() + FRESH_SECONDS
        except (CallError, ValueError, TimeoutError, OSError, RecursionError) as error:
            self._until = time.monotonic() + 1.0
            reason = str(error) or type(error).__name__
            logger.warning("cannot fetch metadata", extra={"url": self._policy.metadata.url, "error": reason})
        finally:
            self._fetching = None

    async def _call(self, source: DocumentSource, method: str, body: bytes | None) -> tuple[int, bytes, str]:
        fields = [("accept", "application/json")]
        if body is not None:
            fields.append(("content-type", "application/json"))
        return await self._send(source, method, fields, body)

    async def _send(
        self, source: DocumentSource, method: str, fields: list[tuple[str, str]], body: bytes | None
    ) -> tuple[int, bytes, str]:
        """Return status, body and content type of an answer."""
        assert source.endpoint is not None
        async with asyncio.timeout(CALL_SECONDS):
            response = await self._env.client(source.endpoint).request(method, source.path, fields, body)
            try:
                kind = response.header("content-type") or "application/json"
                return response.status, await response.read(MAX_DOCUMENT), kind
            finally:
                await response.aclose()

    # -- token requests that go through the gateway --------------------------------------------------------------------
    def _token(self, ctx: RequestContext, place: DocumentSource) -> Awaitable[Reply | None] | Reply:
        if ctx.method != "POST":
            return Reply(405, b"", ((b"allow", b"POST"),), "InvalidRequest")
        if ctx.body_state != BODY_WHOLE:
            return Reply(413, b"", (), "InvalidRequest")
        policy, given = self._policy, ctx.request.get("authorization")
        secret = None if policy.client_secret is None else policy.client_secret.reveal()
        form = oauth.without_resource((ctx.request_body or b"").decode("utf-8", "replace"))
        form = oauth.with_secret(form, policy.client_id, secret, authenticated=given is not None)
        fields = [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")]
        return self._exchanged(place, fields if given is None else [*fields, ("authorization", given)], form.encode())

    async def _exchanged(self, place: DocumentSource, fields: list[tuple[str, str]], form: bytes) -> Reply:
        try:
            status, answer, kind = await self._send(place, "POST", fields, form)
        except (CallError, ValueError, TimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            logger.warning("token request failed", extra={"url": place.url, "error": reason})
            return Reply(500, b"", (), "Internal")
        shown = ((b"content-type", kind.encode("ascii", "replace")), (b"cache-control", b"no-store"))
        return Reply(status, answer, shown, "DirectResponse")

    # -- registration (RFC 7591) ---------------------------------------------------------------------------------------
    def _register(self, ctx: RequestContext) -> Awaitable[Reply | None] | Reply:
        if ctx.body_state != BODY_WHOLE:
            return Reply(413, b"", (), "InvalidRequest")
        body = ctx.request_body or b""
        if self._policy.client_id is not None:
            try:
                request = json.loads(body)
            except (ValueError, RecursionError):
                request = None
            found = oauth.registered(self._policy.client_id, request)
            return Reply(201, json.dumps(found).encode(), (JSON,), "DirectResponse")
        if ctx.method == "OPTIONS":
            return Reply(200, b"", REGISTRATION_CORS, "DirectResponse")
        return self._proxied(body)

    async def _proxied(self, body: bytes) -> Reply:
        if self._policy.clients is None:
            logger.warning("registrations go nowhere: set clientId", extra={"issuer": self._issuer})
            return Reply(500, b"", (), "Internal")
        try:
            status, answer, kind = await self._call(self._policy.clients, "POST", body)
        except (CallError, ValueError, TimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            logger.warning("registration failed", extra={"url": self._policy.clients.url, "error": reason})
            return Reply(500, b"", (), "Internal")
        fields = ((b"content-type", kind.encode("ascii", "replace")), *REGISTRATION_CORS)
        return Reply(status, answer, fields, "DirectResponse")


def external(ctx: RequestContext) -> str:
    """Return scheme and authority under which the client reached us."""
    told = ctx.request.get("x-forwarded-proto")
    scheme = told if told in ("http", "https") else "https" if ctx.secure else "http"
    return f"{scheme}://{ctx.authority}"


def compile_mcp_authentication(policy: McpAuthentication, env: Environment) -> tuple[Step, ...]:
    """Return the steps."""
    return McpAuthenticationPolicy(policy, env).steps
