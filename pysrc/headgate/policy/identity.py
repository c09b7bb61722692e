"""Compiles `jwtAuth`, `apiKey` and `basicAuth` to steps."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from headgate.crypto.htpasswd import check_password, parse_htpasswd
from headgate.crypto.jws import LEEWAY_SECONDS, Checks, TokenError, UnknownKey, check_claims, verify
from headgate.crypto.password_pool import PASSWORDS, PoolFull
from headgate.ir.policy.identity import ApiKeyAuth, BasicAuth, JwtAuth
from headgate.policy.environment import Environment
from headgate.policy.key_sets import KeyStore
from headgate.policy.location import compile_location
from headgate.policy.refusals import (
    BAD_API_KEY,
    BAD_BASIC,
    NO_API_KEY,
    NO_BASIC,
    REASON,
    TOO_MANY_LOGINS,
    UNAUTHORIZED,
)
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.llm.pattern import ModelPattern
from headgate_engine.steps.identity import ApiKeyStep, BasicStep, ChallengeStep, IdentityStep, JwtStep

JSON = (b"content-type", b"application/json")
TEXT = (b"content-type", b"text/plain")
# A verified password is accepted for this long without another hash computation.
REMEMBER_SECONDS = 60.0
MAX_PASSWORD = 1024


def invalid_token(error: str) -> str:
    """Return the parameters of a challenge that say what is wrong with a token (RFC 6750 section 3)."""
    return f'error="invalid_token", error_description="{error}"'


def _jwt_reply(error: str) -> Reply:
    challenge = f"Bearer {invalid_token(error)}" if error else "Bearer"
    return Reply(401, UNAUTHORIZED, (JSON, (b"www-authenticate", challenge.encode())), REASON)


class JwtPolicy:
    """The JWT checks of one policy: its providers with their key sets, which cache verified tokens. Its step holds it.

    `challenge` makes the reply to a request without a valid token if that reply depends on the request; it is given
    what is wrong with the token, "" where there is none.
    """

    def __init__(
        self, auth: JwtAuth, env: Environment, challenge: Callable[[RequestContext, str], Reply] | None = None
    ) -> None:
        self._challenge = challenge
        self._location = compile_location(auth.location, env)
        self._mode = auth.mode
        self.providers: list[tuple[Checks, KeyStore]] = []
        for one in auth.providers:
            store = env.key_store(one.keys)
            checks = store.shared(Checks(one.issuer, one.audiences, frozenset(one.required)))
            self.providers.append((checks, store))

    def step(self) -> JwtStep:
        """Return a step that makes these checks."""
        made: JwtStep
        if self._challenge is None:
            missing, invalid = _jwt_reply(""), _jwt_reply("invalid token")
            made = JwtStep("jwtAuth", self._location, self._mode, self.check, missing, invalid)
        else:
            made = ChallengeStep("mcpAuthentication", self._location, self._mode, self.check, self._challenge)
        made.trust(tuple((store.verified, checks) for checks, store in self.providers))
        return made

    def check(self, step: IdentityStep, ctx: RequestContext, token: bytes) -> Reply | Awaitable[Reply | None] | None:
        """Verify a token that is not cached; None means that it is valid. Waits only if keys must be fetched again."""
        try:
            self._admit(step, ctx, token)
        except UnknownKey as error:
            if any(store.may_refetch for _, store in self.providers):
                return self._refetched(step, ctx, token)
            return self._refused(ctx, error)
        except TokenError as error:
            return self._refused(ctx, error)
        return None

    def _refused(self, ctx: RequestContext, error: TokenError) -> Reply:
        """Return the reply to a request with a token that does not count. The log tells more than the client."""
        detail = error.detail
        if isinstance(error, UnknownKey):
            empty = [store.source.shown for _, store in self.providers if not store.keys.keys]
            detail += "".join(f"; there are no keys of {shown} yet" for shown in empty)
        ctx.add_log_field("jwt.error", f"{error}: {detail}" if detail else str(error))
        return _jwt_reply(str(error)) if self._challenge is None else self._challenge(ctx, str(error))

    async def _refetched(self, step: IdentityStep, ctx: RequestContext, token: bytes) -> Reply | None:
        stale = [store for _, store in self.providers if store.may_refetch]
        await asyncio.gather(*(store.refetch() for store in stale))
        try:
            self._admit(step, ctx, token)
        except TokenError as error:
            return self._refused(ctx, error)
        return None

    def _admit(self, step: IdentityStep, ctx: RequestContext, token: bytes) -> None:
        """Accept a token that one provider's key verifies; raises TokenError of the provider with the token's key."""
        now = time.time()
        failure: TokenError | None = None
        unknown = UnknownKey(None)
        for checks, store in self.providers:
            try:
                claims = store.verified.claims(token)
                if claims is None:
                    claims = verify(token, store.keys, checks, now)
                else:
                    check_claims(claims, checks, now)
            except UnknownKey as error:
                unknown = error
                continue
            except TokenError as error:
                failure = error
                continue
            store.verified.remember(token, claims, checks, _seconds_left(claims, now))
            step.admit(ctx, token, claims)
            return
        raise unknown if failure is None else failure


def _seconds_left(claims: dict[str, Any], now: float) -> float:
    expires = claims.get("exp")
    return 0.0 if expires is None else max(min(float(expires) + LEEWAY_SECONDS - now, 3600.0), 0.0)


def compile_jwt(auth: JwtAuth, env: Environment) -> JwtStep:
    """Return the step of `jwtAuth`."""
    return JwtPolicy(auth, env).step()


def compile_api_key(auth: ApiKeyAuth, env: Environment) -> ApiKeyStep:
    """Return the step of `apiKey`."""
    keys: dict[bytes, tuple[dict[str, object], tuple[ModelPattern, ...] | None]] = {
        one.digest: (json.loads(one.metadata), None if one.models is None else tuple(map(ModelPattern, one.models)))
        for one in auth.keys
    }
    missing, invalid = (
        Reply(401, text.encode(), (TEXT,), "APIKeyAuth") for text in (NO_API_KEY, BAD_API_KEY)
    )
    if auth.virtual:
        from headgate.policy.virtual_keys import compile_virtual  # with the first policy that wants it

        return compile_virtual(auth, keys, (missing, invalid), env)
    return ApiKeyStep("apiKey", compile_location(auth.location, env), auth.mode, keys, missing, invalid)


def compile_basic(auth: BasicAuth, env: Environment) -> BasicStep:
    """Return the step of `basicAuth`. Password hashes are computed in a thread."""
    users = parse_htpasswd(auth.users.reveal())
    proxy = auth.location.name == "proxy-authorization"
    field = b"proxy-authenticate" if proxy else b"www-authenticate"
    challenge = (field, f'Basic realm="{auth.realm}"'.encode())
    missing, invalid = (
        Reply(407 if proxy else 401, text.encode(), (TEXT, challenge), "BasicAuth") for text in (NO_BASIC, BAD_BASIC)
    )

    busy = Reply(429, TOO_MANY_LOGINS.encode(), (TEXT, (b"retry-after", b"1")), "BasicAuth")

    def check(step: IdentityStep, ctx: RequestContext, credential: bytes) -> Reply | Awaitable[Reply | None]:
        try:
            name, colon, password = base64.b64decode(credential, validate=True).decode().partition(":")
        except ValueError:
            return invalid
        if not colon or len(password) > MAX_PASSWORD or "\0" in password:
            return invalid
        return verified(step, ctx, credential, name, password)

    async def verified(
        step: IdentityStep, ctx: RequestContext, credential: bytes, name: str, password: str
    ) -> Reply | None:
        try:
            if not await PASSWORDS.run(partial(check_password, users, name, password)):
                return invalid
        except PoolFull:
            return busy
        step.admit(ctx, credential, name, REMEMBER_SECONDS)
        return None

    return BasicStep("basicAuth", compile_location(auth.location, env), auth.mode, check, missing, invalid)
