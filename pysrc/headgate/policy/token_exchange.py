"""`oauthTokenExchange` and `crossAppAccess`: exchange the client's token for another one, cached per client token.

Sources: RFC 8693 (token exchange), RFC 7523 (assertions), RFC 6749 (errors, client authentication),
https://datatracker.ietf.org/doc/draft-ietf-oauth-identity-assertion-authz-grant/ (ID-JAG).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from headgate.crypto.signing import signed, signing_key
from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policy.token_exchange import (
    DEFAULT_TIMEOUT_MS,
    ClientAuth,
    CrossAppAccess,
    TokenCache,
    TokenEndpoint,
    TokenExchange,
)
from headgate.policy.cloud.steps import TEXT, failed
from headgate.policy.environment import Environment
from headgate.policy.location import compile_location
from headgate.policy.remote import HttpPolicyService
from headgate_engine.context.request import Reply, RequestContext, log_extra
from headgate_engine.expr.values import EvaluationError
from headgate_engine.link.client import CallError
from headgate_engine.plan.step import AsyncStep
from headgate_engine.steps.location import CredentialLocation

logger = logging.getLogger("headgate.token_exchange")

MAX_ANSWER: Final = 256 * 1024
# A token is no longer used this long before it expires.
MARGIN_SECONDS: Final = 15.0
ASSERTION_SECONDS: Final = 300
TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 (the name of a grant)
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLIENT_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"
INVALID: Final = Reply(400, b"invalid request", TEXT, "InvalidRequest")
MAY_NOT_ACT: Final = Reply(403, b"the actor may not act for the subject of the token", TEXT, "Authorization")

Form = list[tuple[str, str]]


class ExchangeError(Exception):
    """The exchange failed. `refused`: the server rejected the client's token. The text contains no secret."""

    def __init__(self, reason: str, *, refused: bool = False) -> None:
        super().__init__(reason)
        self.refused = refused


@dataclass(frozen=True, slots=True)
class ExchangedToken:
    """A token, and the monotonic time in seconds until which it can be used."""

    token: bytes
    until: float


class TokenEndpointClient:
    """Calls a token endpoint."""

    def __init__(self, endpoint: TokenEndpoint, env: Environment) -> None:
        self._endpoint = endpoint
        self._service = HttpPolicyService(endpoint.service, env, "Http")
        self._seconds = (endpoint.service.policies.request_timeout_ms or DEFAULT_TIMEOUT_MS) / 1000
        auth = endpoint.client
        self._key = None
        if auth is not None and auth.method == "privateKeyJwt" and auth.key is not None:
            self._key = signing_key(auth.key.secret.reveal(), auth.algorithm)

    async def ask(self, form: Form, origin: RequestContext) -> dict[str, Any]:
        """Return the response to a grant on behalf of a request; raises ExchangeError."""
        headers = [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")]
        auth = self._endpoint.client
        if auth is not None:
            form = form + self._proof(auth, headers)
        body = urlencode(form).encode()
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._service.request(origin, "POST", self._endpoint.path, headers, body)
                try:
                    status, body = response.status, await response.read(MAX_ANSWER)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise ExchangeError("the token endpoint did not answer in time") from None
        except (CallError, ValueError, OSError) as error:
            raise ExchangeError(f"the token endpoint cannot be called: {error}") from None
        return self._read(status, body, origin)

    def _read(self, status: int, body: bytes, origin: RequestContext) -> dict[str, Any]:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if status != 200:
            code = found.get("error") if isinstance(found, dict) else None
            told = f" ({code[:64]})" if isinstance(code, str) and code.isprintable() else ""
            where = self._endpoint.service.name
            fields = log_extra(origin, endpoint=where, status=status, error=told.strip())
            logger.warning("token endpoint refused", extra=fields)
            raise ExchangeError(
                f"the token endpoint answered {status}{told}", refused=400 <= status < 500 and status not in (401, 403)
            )
        if not isinstance(found, dict) or not isinstance(found.get("access_token"), str):
            raise ExchangeError("the token endpoint answered without a token")
        return found

    def _proof(self, auth: ClientAuth, headers: list[tuple[str, str]]) -> Form:
        """Return the form fields of the client authentication. A header of it is appended to `headers`."""
        secret = "" if auth.key is None else auth.key.secret.reveal()
        if auth.method == "clientSecretBasic":
            # RFC 6749 section 2.3.1: both parts are form-encoded before they are joined.
            pair = f"{quote_plus(auth.client_id)}:{quote_plus(secret)}"
            headers.append(("authorization", "Basic " + base64.b64encode(pair.encode()).decode()))
            return []
        if auth.method == "clientSecretPost":
            return [("client_id", auth.client_id), *([("client_secret", secret)] if secret else [])]
        now = int(time.time())
        claims = {
            "iss": auth.client_id, "sub": auth.client_id, "aud": auth.audience, "jti": secrets.token_urlsafe(16),
            "iat": now, "exp": now + ASSERTION_SECONDS,
        }  # fmt: skip
        told: dict[str, Any] = {} if auth.kid is None else {"kid": auth.kid}
        if auth.chain:
            told["x5c"] = list(auth.chain)
        if auth.thumbprint is not None:
            told["x5t#S256"] = auth.thumbprint
        assertion = signed(self._key, auth.algorithm, claims, told).decode()
        return [
            ("client_id", auth.client_id), ("client_assertion_type", CLIENT_ASSERTION), ("client_assertion", assertion),
        ]  # fmt: skip


class Exchanger:
    """The exchanges of one policy in one worker. Concurrent equal exchanges share one call; results are cached."""

    def __init__(self, cache: TokenCache, env: Environment) -> None:
        self._cache = cache
        self._env = env
        self._kept: dict[bytes, ExchangedToken] = {}
        self._running: dict[bytes, asyncio.Future[ExchangedToken | ExchangeError]] = {}

    def known(self, key: bytes) -> bytes | None:
        """Return the cached token, None if there is none."""
        found = self._kept.pop(key, None)
        if found is None or found.until <= time.monotonic():
            return None
        # Reinserted at the end: the least recently used entry is dropped first.
        self._kept[key] = found
        return found.token

    async def token(self, key: bytes, make: Callable[[], Awaitable[dict[str, Any]]], subject: bytes) -> bytes:
        """Return the token of an exchange; raises ExchangeError. It continues for others if one client disconnects."""
        result = self._running.get(key)
        if result is None:
            result = self._running[key] = asyncio.get_running_loop().create_future()
            self._env.spawn("token exchange", self._work(key, make, subject))
        found = await asyncio.shield(result)
        if isinstance(found, ExchangeError):
            raise found
        return found.token

    async def _work(self, key: bytes, make: Callable[[], Awaitable[dict[str, Any]]], subject: bytes) -> None:
        found: ExchangedToken | ExchangeError = ExchangeError("a fault of the gateway")  # unexpected; the task logs it
        try:
            found = self._given(await make(), subject)
            if self._cache.entries:
                while len(self._kept) >= self._cache.entries:
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = found
        except ExchangeError as error:
            found = error
        finally:
            self._running.pop(key).set_result(found)

    def _given(self, answer: dict[str, Any], subject: bytes) -> ExchangedToken:
        """Return the token in a response, with the time until which it is cached."""
        if str(answer.get("token_type", "")).lower() != "bearer":
            raise ExchangeError("the token endpoint answered with a token that is not a bearer token")
        token = answer["access_token"]
        if not token or any(not "!" <= char <= "~" for char in token):
            raise ExchangeError("the token endpoint answered with a token that cannot be sent in a header")
        lives = answer.get("expires_in")
        seconds = float(lives) if isinstance(lives, int | float) else float(self._cache.ttl_s)
        end = _end_of(subject)
        if end is not None:
            seconds = min(seconds, end - time.time())
        return ExchangedToken(token.encode(), time.monotonic() + max(seconds - MARGIN_SECONDS, 0.0))


def _claims(token: bytes) -> dict[str, Any]:
    """Return the claims of a JWT without verifying its signature, none for another token.

    Callers may use the claims only to be stricter: the token endpoint verifies both tokens.
    """
    parts = token.split(b".")
    if len(parts) != 3:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _end_of(token: bytes) -> float | None:
    """Return the `exp` claim of a JWT in Unix seconds, None without one. It can only shorten the time in the cache."""
    found = _claims(token).get("exp")
    return float(found) if isinstance(found, int | float) else None


def may_act(subject: bytes, actor: bytes) -> bool:
    """Return True if `may_act` of the subject's token names this actor (RFC 8693 section 4.4).

    All claims in `may_act` must equal those of the actor's token, and `sub` must be one of them.
    """
    named, known = _claims(subject).get("may_act"), _claims(actor)
    if not isinstance(named, dict) or not isinstance(named.get("sub"), str) or not named["sub"]:
        return False
    return all(name in known and known[name] == value for name, value in named.items())


def _key(*parts: bytes | str) -> bytes:
    told = b"".join(hashlib.sha256(part.encode() if isinstance(part, str) else part).digest() for part in parts)
    return hashlib.sha256(told).digest()


def _taken(place: CredentialLocation, ctx: RequestContext) -> bytes | None:
    """Return the client's token, removed from the request; if jwtAuth removed it already, the one that it verified."""
    return place.take(ctx) or ctx.jwt_token


def _text(token: bytes) -> str:
    return token.decode("ascii", "replace")


def compile_exchange(policy: TokenExchange, env: Environment) -> AsyncStep:
    """Return the step that replaces the client's token by another one."""
    endpoint, exchanger = TokenEndpointClient(policy.endpoint, env), Exchanger(policy.cache, env)
    source, target = compile_location(policy.subject, env), compile_location(policy.location, env)
    actor_place = None if policy.actor is None else compile_location(policy.actor, env)
    programs = [(name, env.program(text, "backend")) for name, text in policy.params]

    def form(subject: bytes, actor: bytes | None, params: Form) -> Form:
        if policy.grant == "jwtBearer":
            found = [("grant_type", JWT_BEARER), ("assertion", _text(subject))]
        else:
            found = [("grant_type", TOKEN_EXCHANGE), ("subject_token", _text(subject)),
                     ("subject_token_type", policy.subject_type)]  # fmt: skip
        if actor is not None:
            found += [("actor_token", _text(actor)), ("actor_token_type", policy.actor_type)]
        found += [("audience", one) for one in policy.audiences]
        found += [("resource", one) for one in policy.resources]
        if policy.scopes:
            found.append(("scope", " ".join(policy.scopes)))
        if policy.requested_type is not None:
            found.append(("requested_token_type", policy.requested_type))
        return found + params

    def obtain(ctx: RequestContext) -> Reply | Awaitable[Reply | None] | None:
        actor = None
        if actor_place is not None:
            actor = actor_place.take(ctx)
            if actor is None:
                return INVALID
        try:
            params = [(name, _as_text(program.evaluate(ctx))) for name, program in programs]
        except (EvaluationError, ValueError):
            return INVALID
        subject = _taken(source, ctx)
        if subject is None:
            return INVALID
        if policy.enforce_may_act and (actor is None or not may_act(subject, actor)):
            return MAY_NOT_ACT
        key = _key(subject, actor or b"", json.dumps(params))
        known = exchanger.known(key)
        if known is not None:
            target.set(ctx, known)
            return None
        told = form(subject, actor, params)
        return _put(ctx, target, exchanger.token(key, lambda: endpoint.ask(told, ctx), subject))

    return AsyncStep("backendAuth", obtain)


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise ValueError("not a text")
    return str(value)


async def _put(ctx: RequestContext, target: CredentialLocation, work: Awaitable[bytes]) -> Reply | None:
    try:
        token = await work
    except ExchangeError as error:
        return INVALID if error.refused else failed(error)
    target.set(ctx, token)
    return None


def compile_cross_app(policy: CrossAppAccess, env: Environment) -> AsyncStep:
    """Return the step that obtains an access token for another application on behalf of the client."""
    identity, resource = TokenEndpointClient(policy.identity, env), TokenEndpointClient(policy.resource, env)
    exchanger = Exchanger(policy.cache, env)
    source, target = compile_location(policy.subject, env), CredentialLocation("header", "authorization", "Bearer ")
    wanted = policy.scopes if policy.access_scopes is None else policy.access_scopes

    async def ask(subject: bytes, ctx: RequestContext) -> dict[str, Any]:
        form = [
            ("grant_type", TOKEN_EXCHANGE), ("requested_token_type", ID_JAG), ("subject_token", _text(subject)),
            ("subject_token_type", policy.subject_type), ("audience", policy.audience),
        ]  # fmt: skip
        form += [("resource", one) for one in policy.resources]
        if policy.scopes:
            form.append(("scope", " ".join(policy.scopes)))
        first = await identity.ask(form, ctx)
        if first.get("issued_token_type") != ID_JAG:
            raise ExchangeError("the identity provider answered with another kind of token")
        form = [("grant_type", JWT_BEARER), ("assertion", first["access_token"])]
        if wanted:
            form.append(("scope", " ".join(wanted)))
        return await resource.ask(form, ctx)

    def obtain(ctx: RequestContext) -> Reply | Awaitable[Reply | None] | None:
        subject = _taken(source, ctx)
        if subject is None:
            return INVALID
        key = _key(subject)
        known = exchanger.known(key)
        if known is not None:
            target.set(ctx, known)
            return None
        return _put(ctx, target, exchanger.token(key, lambda: ask(subject, ctx), subject))

    return AsyncStep("backendAuth", obtain)
