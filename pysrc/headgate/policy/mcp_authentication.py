"""`mcpAuthentication`: metadata documents for clients, client registration, and verification of tokens."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from headgate.dialect import oauth
from headgate.dialect.oauth_answers import RequestError, server_metadata
from headgate.ir.policy.document_source import DocumentSource
from headgate.ir.policy.mcp_authentication import McpAuthentication
from headgate.policy.environment import Environment
from headgate.policy.identity import JSON, JwtPolicy, invalid_token
from headgate.policy.mcp_answers import CALLBACK_PATH, Answers, Seals
from headgate.policy.refusals import REASON, UNAUTHORIZED
from headgate_engine.context.field_names import X_FORWARDED_PROTO
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.client import CallError
from headgate_engine.plan.step import WAIT_BODY_VERDICT, AsyncStep, PythonStep, Step

logger = logging.getLogger("headgate.oauth")

CORS: Final = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, OPTIONS"),
    (b"access-control-allow-headers", b"content-type"),
)
Fields = tuple[tuple[bytes, bytes], ...]
REGISTRATION_CORS: Final = (CORS[0], (b"access-control-allow-methods", b"POST, OPTIONS"), CORS[2])
TOKEN_CORS: Final = (
    CORS[0],
    REGISTRATION_CORS[1],
    (b"access-control-allow-headers", b"authorization, content-type, mcp-protocol-version"),
)
WELL_KNOWN: Final = "/.well-known/"
FRESH_SECONDS: Final = 60.0
CALL_SECONDS: Final = 10.0
MAX_DOCUMENT: Final = 256 * 1024
MAX_REGISTRATION: Final = 64 * 1024
BODY_UNREAD, BODY_WHOLE = 0, 1


class MetadataRequest(NamedTuple):
    """A copy of request data: the context may serve another request meanwhile. `url` is the URL of the metadata."""

    method: str
    path: str
    url: str
    query: str
    body: bytes | None
    authorization: str | None


class McpAuthenticationPolicy:
    """The policy in one worker."""

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
        self._answers: Answers | None = None
        self._warned = False
        resource = self._more.get("resource")
        parts = urlsplit(resource) if isinstance(resource, str) else None
        self._origin = f"{parts.scheme}://{parts.netloc}" if parts is not None and parts.netloc else None

    def steps(self) -> tuple[Step, ...]:
        """Return the steps of this policy, which hold it."""
        return (
            PythonStep("mcpAuthentication body", self.want_body),
            AsyncStep("mcpAuthentication documents", self.document),
            JwtPolicy(self._policy.jwt, self._env, self.challenge).step(),
            PythonStep("mcpAuthentication registration body", self.want_registration),
            AsyncStep("mcpAuthentication registration", self.registration),
        )

    # -- tokens --------------------------------------------------------------------------------------------------------
    def challenge(self, ctx: RequestContext, error: str = "") -> Reply:
        """Return the 401 with the URL of the metadata (RFC 9728 section 5.1), and what is wrong with the token."""
        origin = external(ctx) if self._origin is None else self._origin
        # A quote or backslash in the path would end the quoted string (RFC 9110 section 5.6.4).
        path = ctx.path.replace("\\", "%5C").replace('"', "%22")
        where = f'Bearer resource_metadata="{origin}{oauth.PROTECTED_RESOURCE}{path}"'
        told = f"{where}, {invalid_token(error)}" if error else where
        fields = (JSON, (b"www-authenticate", told.encode("ascii", "replace")))
        return Reply(401, UNAUTHORIZED, fields, REASON)

    # -- documents -----------------------------------------------------------------------------------------------------
    def want_body(self, ctx: RequestContext) -> int | None:
        """Wait for the body of a registration or token request."""
        if not ctx.path.startswith(WELL_KNOWN):
            return None
        proxied = self._policy.kind is not None and ctx.path.endswith(oauth.TOKEN)
        return wanted(ctx) if proxied or ctx.path.endswith(oauth.REGISTRATION) else None

    def document(self, ctx: RequestContext) -> Awaitable[Reply | None] | Reply | None:
        """Return the response to a request that needs no token, None for other requests."""
        path = ctx.path
        if not path.startswith(WELL_KNOWN):
            return None
        if oauth.beneath(path, oauth.PROTECTED_RESOURCE):
            return self._resource(ctx)
        if not oauth.beneath(path, oauth.AUTHORIZATION_SERVER):
            return None
        if path.endswith(oauth.REGISTRATION):
            return self._register(ctx, external(ctx) + path.removesuffix(oauth.REGISTRATION))
        if self._policy.kind is not None:
            for suffix, handle in ((oauth.AUTHORIZE, self._authorize), (oauth.TOKEN, self._token)):
                if path.endswith(suffix):
                    return handle(metadata_request(ctx, external(ctx) + path.removesuffix(suffix)))
            if found := CALLBACK_PATH.search(path):
                return self._returned(metadata_request(ctx, external(ctx) + path[: found.start()]), found[1] or "")
        return self._server(external(ctx) + path)

    def want_registration(self, ctx: RequestContext) -> int | None:
        """Wait for the body of a registration outside the well-known paths; such a request needs a token."""
        return wanted(ctx) if ctx.path.endswith(oauth.REGISTRATION) else None

    def registration(self, ctx: RequestContext) -> Awaitable[Reply | None] | Reply | None:
        """Return the response to a registration outside the well-known paths, None for other requests."""
        if not ctx.path.endswith(oauth.REGISTRATION):
            return None
        place = ctx.path.removesuffix(oauth.REGISTRATION)
        return self._register(ctx, external(ctx) + oauth.AUTHORIZATION_SERVER + place)

    def _resource(self, ctx: RequestContext) -> Reply:
        resource = external(ctx) + ctx.path.removeprefix(oauth.PROTECTED_RESOURCE)
        found = oauth.protected_resource(resource, self._issuer, self._policy.kind, self._more)
        return Reply(200, json.dumps(found).encode(), (JSON, *CORS), "DirectResponse")

    async def _server(self, url: str) -> Reply:
        try:
            document = await self._metadata()
            found = oauth.authorization_server(document, self._policy.kind, url, self._audience)
            if self._relaying(document) is not None:
                found = server_metadata(found, url)
        except oauth.UnusableMetadata as error:
            logger.warning("metadata cannot be served", extra={"issuer": self._issuer, "error": str(error)})
            return Reply(500, b"", (), "Internal")
        return Reply(200, json.dumps(found).encode(), (JSON, *CORS), "DirectResponse")

    async def _metadata(self) -> dict[str, Any]:
        """Return the provider's metadata. It is fetched at most once a minute; if that fails, the old one is used."""
        if time.monotonic() >= self._until:
            if self._fetching is None:
                self._fetching = self._env.spawn(f"oauth metadata {self._issuer}", self._fetch())
            await asyncio.wait([self._fetching])
        if self._document is None:
            raise oauth.UnusableMetadata("the provider's metadata cannot be fetched")
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
            logger.warning("cannot fetch metadata", extra={"url": self._policy.metadata.shown, "error": reason})
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
        """Return status, body and content type of the response."""
        assert source.endpoint is not None
        async with asyncio.timeout(CALL_SECONDS):
            response = await self._env.client(source.endpoint).request(method, source.path, fields, body)
            try:
                kind = response.header("content-type") or "application/json"
                return response.status, await response.read(MAX_DOCUMENT), kind
            finally:
                await response.aclose()

    # -- requests and responses that are relayed through the gateway --------------------------------------------------
    def _relaying(self, document: dict[str, Any]) -> Answers | None:
        """Return the relay of authorization responses, None if the provider sends them to the clients directly."""
        policy = self._policy
        if policy.kind is None or self._env.sealer is None or not Answers.wanted(document):
            return None
        if policy.client_id is not None and not policy.redirect_uris:
            if not self._warned:
                self._warned = True
                text = "strict clients refuse responses with the provider's own issuer: set redirectUris"
                logger.warning(text, extra={"issuer": self._issuer})
            return None
        if self._answers is None:
            own = None if policy.client_id is None else (policy.client_id, policy.redirect_uris)
            self._answers = Answers(self._issuer, own, Seals(self._issuer, self._env.sealer))
        return self._answers

    async def _known(self) -> dict[str, Any]:
        """Return the provider's metadata, an empty object if it is not available."""
        try:
            return await self._metadata()
        except oauth.UnusableMetadata:
            return {}

    async def _authorize(self, request: MetadataRequest) -> Reply:
        document = await self._known()
        answers, query = self._relaying(document), request.query
        if answers is None and self._policy.authorize is None:
            return await self._server(request.url + oauth.AUTHORIZE)
        try:
            if answers is not None:
                if request.method != "GET":
                    return Reply(405, b"", ((b"allow", b"GET"),), "InvalidRequest")
                query = answers.authorize(query, request.url)
            if self._policy.authorize is not None:
                place = f"{self._policy.authorize}?{oauth.without_resource(query)}"
            else:
                found = oauth.authorization_server(document, self._policy.kind, request.url, self._audience)
                endpoint = str(found["authorization_endpoint"])
                place = f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"
        except RequestError as error:
            return refused(str(error))
        return redirect(place)

    async def _returned(self, request: MetadataRequest, tag: str) -> Reply:
        answers = self._relaying(await self._known())
        if answers is None:
            return await self._server(request.url + request.path)
        if request.method != "GET":
            return Reply(405, b"", ((b"allow", b"GET"),), "InvalidRequest")
        try:
            return redirect(answers.returned(request.query, tag))
        except RequestError as error:
            return refused(str(error))

    async def _token(self, request: MetadataRequest) -> Reply:
        document = await self._known()
        answers, place = self._relaying(document), self._policy.token
        if answers is None and place is None:
            return await self._server(request.url + oauth.TOKEN)
        if answers is not None and request.method == "OPTIONS":
            return Reply(200, b"", TOKEN_CORS, "DirectResponse")
        if request.method != "POST":
            return Reply(405, b"", ((b"allow", b"POST"),), "InvalidRequest")
        if request.body is None:
            return Reply(413, b"", (), "InvalidRequest")
        form, given = request.body.decode("utf-8", "replace"), request.authorization
        try:
            if answers is not None:
                form, given = answers.token(form, given, request.url)
                place = place or DocumentSource.remote(str(document.get("token_endpoint")))
        except RequestError as error:
            return oauth_error("invalid_request", str(error), TOKEN_CORS)
        except ValueError:
            logger.warning("the metadata has no token_endpoint", extra={"issuer": self._issuer})
            return Reply(500, b"", (), "Internal")
        assert place is not None
        if self._policy.token is not None:
            secret = None if self._policy.client_secret is None else self._policy.client_secret.reveal()
            form = oauth.without_resource(form)
            form = oauth.with_secret(form, self._policy.client_id, secret, authenticated=given is not None)
        fields = [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")]
        if given is not None:
            fields.append(("authorization", given))
        return await self._exchanged(place, fields, form.encode(), TOKEN_CORS if answers is not None else ())

    async def _exchanged(
        self, place: DocumentSource, fields: list[tuple[str, str]], form: bytes, cors: Fields
    ) -> Reply:
        try:
            status, answer, kind = await self._send(place, "POST", fields, form)
        except (CallError, ValueError, TimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            logger.warning("token request failed", extra={"url": place.shown, "error": reason})
            return Reply(500, b"", (), "Internal")
        shown = ((b"content-type", kind.encode("ascii", "replace")), (b"cache-control", b"no-store"), *cors)
        return Reply(status, answer, shown, "DirectResponse")

    # -- registration (RFC 7591) ---------------------------------------------------------------------------------------
    def _register(self, ctx: RequestContext, url: str) -> Awaitable[Reply | None] | Reply:
        if ctx.body_state != BODY_WHOLE:
            return Reply(413, b"", (), "InvalidRequest")
        body = ctx.request_body or b""
        if ctx.method == "OPTIONS":
            return Reply(200, b"", REGISTRATION_CORS, "DirectResponse")
        if self._policy.client_id is not None:
            try:
                request = json.loads(body)
            except (ValueError, RecursionError):
                request = None
            found = oauth.registered(self._policy.client_id, request)
            # Clients in browsers register too and need CORS fields in this response.
            return Reply(201, json.dumps(found).encode(), (JSON, *REGISTRATION_CORS), "DirectResponse")
        return self._proxied(body, url)

    async def _proxied(self, body: bytes, url: str) -> Reply:
        place, answers, client = self._policy.clients, None, None
        if self._policy.kind is not None:
            document = await self._known()
            answers = self._relaying(document)
            own = document.get("registration_endpoint")
            if answers is not None and isinstance(own, str) and oauth.KINDS[self._policy.kind].registration == "keep":
                place = DocumentSource.remote(own)
        if place is None:
            logger.warning("clients cannot register: set clientId", extra={"issuer": self._issuer})
            return Reply(500, b"", (), "Internal")
        try:
            if answers is not None:
                body, client = answers.registration(body, url)
            status, answer, kind = await self._call(place, "POST", body)
        except RequestError as error:
            return oauth_error("invalid_redirect_uri", str(error), REGISTRATION_CORS)
        except (CallError, ValueError, TimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            logger.warning("registration failed", extra={"url": place.shown, "error": reason})
            return Reply(500, b"", (), "Internal")
        if answers is not None and client is not None and 200 <= status < 300:
            own_answer = answers.registered(answer, client)
            if own_answer is None:
                logger.warning("the answer to a registration cannot be read", extra={"url": place.shown})
                return Reply(500, b"", (), "Internal")
            answer = own_answer
        fields = ((b"content-type", kind.encode("ascii", "replace")), *REGISTRATION_CORS)
        return Reply(status, answer, fields, "DirectResponse")


def wanted(ctx: RequestContext) -> int | None:
    """Request the body if no step has read it yet."""
    if ctx.body_state != BODY_UNREAD:
        return None
    ctx.body_limit = MAX_REGISTRATION
    return WAIT_BODY_VERDICT


def metadata_request(ctx: RequestContext, url: str) -> MetadataRequest:
    """Return the parts of the request; `body` is None if it is not complete."""
    body = (ctx.request_body or b"") if ctx.body_state == BODY_WHOLE else None
    query = ctx.target.partition("?")[2]
    return MetadataRequest(ctx.method, ctx.path, url, query, body, ctx.request.get("authorization"))


def redirect(place: str) -> Reply:
    """Return a redirect that no cache may store, because its URL contains a code."""
    fields = ((b"location", place.encode("ascii", "replace")), (b"cache-control", b"no-store"))
    return Reply(302, b"", fields, "DirectResponse")


def refused(message: str) -> Reply:
    """Return an error for the browser: an invalid request must not be redirected (RFC 6749 section 4.1.2.1)."""
    return Reply(400, f"oauth: {message}".encode(), ((b"content-type", b"text/plain"),), "InvalidRequest")


def oauth_error(code: str, message: str, cors: Fields) -> Reply:
    """Return an error in the form of RFC 6749 section 5.2."""
    body = json.dumps({"error": code, "error_description": message}).encode()
    return Reply(400, body, (JSON, (b"cache-control", b"no-store"), *cors), "InvalidRequest")


def external(ctx: RequestContext) -> str:
    """Return the scheme and authority in the client's URL of the gateway."""
    told = ctx.request.get(X_FORWARDED_PROTO)
    scheme = told if told in ("http", "https") else "https" if ctx.secure else "http"
    return f"{scheme}://{ctx.authority}"


def compile_mcp_authentication(policy: McpAuthentication, env: Environment) -> tuple[Step, ...]:
    """Return the steps."""
    return McpAuthenticationPolicy(policy, env).steps()
