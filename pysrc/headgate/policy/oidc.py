"""`oidc`: browser login by the authorization code flow with PKCE (RFC 7636); the session is a sealed cookie.

The gateway stores nothing. A login in progress has a cookie of its own, so any worker or replica with the same cookie
key can complete it. A session may be renewed with the provider's refresh token before it expires.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Awaitable
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from headgate.crypto.sealed import Sealer
from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policy.oidc import Oidc
from headgate.policy.environment import Environment
from headgate.policy.oidc_provider import Metadata, Provider, ProviderError
from headgate_engine.context.cookies import SESSION_PREFIX
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.limit.bucket import TokenBucket
from headgate_engine.steps.identity import IdentityStep
from headgate_engine.steps.session import OidcStep

TEXT: Final = (b"content-type", b"text/plain")
NO_STORE: Final = (b"cache-control", b"no-store")
LOGIN_SECONDS: Final = 300
SESSION_SECONDS: Final = 3600
MAX_COOKIE: Final = 3800
MAX_RETURN: Final = 2048
# Maximum number of logins in progress per browser; a further login replaces the oldest one.
MAX_LOGINS: Final = 5
# Share of its lifetime after which a session is renewed, and seconds until a failed renewal is repeated.
RENEW_SHARE: Final = 0.75
RENEW_PAUSE: Final = 10.0
RENEW_PLACES: Final = 1024
NS_PER_S: Final = 1_000_000_000


class Failure(Exception):
    """The login fails: `status` and text of the response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class OidcSession:
    """An ID token with its claims. Times are Unix seconds."""

    token: str
    claims: dict[str, Any]
    issued: float
    expires: float
    refresh: str | None = None

    @property
    def renew_at(self) -> float:
        """Return the time of the renewal, which is the expiry if the session cannot be renewed."""
        if self.refresh is None:
            return self.expires
        return self.issued + (self.expires - self.issued) * RENEW_SHARE


class OidcPolicy:
    """The policy in one worker."""

    def __init__(self, policy: Oidc, env: Environment) -> None:
        self._policy = policy
        self._segment = env.segment
        # Rate limits of renewals by bucket number, below RENEW_PLACES.
        self._renewals: dict[int, TokenBucket] = {}
        self.provider = Provider(policy, env)
        key = bytes.fromhex(policy.cookie_key.reveal())
        self._sessions = Sealer(key, f"oidc session {policy.key}")
        self._logins = Sealer(key, f"oidc login {policy.key}")
        redirect = urlsplit(policy.redirect_uri)
        self._callback, self._logout = redirect.path, redirect.path + "/logout"
        self._session_cookie = f"{SESSION_PREFIX}s_{policy.key}"
        self._login_prefix = f"{SESSION_PREFIX}t_{policy.key}."
        self._attributes = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if redirect.scheme == "https" else "")

    def step(self) -> OidcStep:
        """Return the step of this policy, which holds it."""
        return OidcStep(self._session_cookie, self._callback, self._logout, self.judge)

    # -- dispatch ----------------------------------------------------------------------------------------------------
    def judge(
        self, step: IdentityStep, ctx: RequestContext, credential: bytes | None
    ) -> Awaitable[Reply | None] | Reply | None:
        """Answer callback and logout, admit requests with a session, and redirect others to the provider."""
        if ctx.path == self._callback:
            return self._guarded(self._finish_login(ctx))
        session = None if credential is None else self._open(credential)
        if ctx.path == self._logout:
            return self._guarded(self._end(ctx, session))
        now = time.time()
        if session is None or session.expires <= now:
            metadata = self.provider.known
            return self._login(ctx, metadata) if metadata else self._guarded(self._login_later(ctx))
        assert credential is not None
        if now >= session.renew_at and self._may_renew(credential):
            return self._renewed(step, ctx, credential, session)
        until = session.renew_at if now < session.renew_at else min(now + RENEW_PAUSE, session.expires)
        _admit(step, ctx, credential, session, until - now)
        return None

    async def _guarded(self, answer: Awaitable[Reply]) -> Reply:
        try:
            return await answer
        except Failure as error:
            return _failed(error.status, str(error))
        except ProviderError as error:
            return _failed(500, str(error))

    # -- cookies -----------------------------------------------------------------------------------------------------
    def _cookie(self, name: str, value: str, seconds: int) -> tuple[bytes, bytes]:
        return b"set-cookie", f"{name}={value}; Max-Age={seconds}{self._attributes}".encode()

    def _seal(self, session: OidcSession) -> tuple[bytes, bytes]:
        """Return the Set-Cookie field for the session. The refresh token is omitted if the cookie would be too long."""
        seconds = int(session.expires - time.time())
        for refresh in dict.fromkeys((session.refresh, None)):
            content = json.dumps([session.token, session.issued, session.expires, refresh])
            name, value = self._cookie(self._session_cookie, self._sessions.seal(content.encode()), seconds)
            if len(value) <= MAX_COOKIE:
                return name, value
        raise Failure(500, "the session does not fit into a cookie")

    def _open(self, credential: bytes) -> OidcSession | None:
        content = self._sessions.open(credential)
        if content is None:
            return None
        token, issued, expires, refresh = json.loads(content)
        return OidcSession(token, _claims(token), issued, expires, refresh)

    def _logins_of(self, ctx: RequestContext) -> dict[str, str]:
        """Return the cookies of logins in progress, oldest first (RFC 6265 section 5.4)."""
        found: dict[str, str] = {}
        for part in ctx.own_cookies or ():
            name, _, value = part.decode("latin-1").partition("=")
            if name.startswith(self._login_prefix):
                found[name] = value
        return found

    # -- login -------------------------------------------------------------------------------------------------------
    async def _login_later(self, ctx: RequestContext) -> Reply:
        try:
            metadata = await self.provider.metadata()
        except ProviderError as error:
            raise Failure(401, str(error)) from None
        return self._login(ctx, metadata)

    def _login(self, ctx: RequestContext, metadata: Metadata) -> Reply:
        """Return the redirect to the provider, with the cookie that stores the state of the login."""
        number, state, nonce, verifier = (secrets.token_urlsafe(n) for n in (16, 16, 16, 32))
        target = ctx.target
        content = json.dumps({
            "state": state,
            "nonce": nonce,
            "verifier": verifier,
            "target": target if _is_local(target) else "/",
            "until": time.time() + LOGIN_SECONDS,
        })  # fmt: skip
        shown = json.dumps({"transactionId": number, "csrfState": state}, separators=(",", ":"))
        query = urlencode({
            "response_type": "code",
            "client_id": self._policy.client_id,
            "redirect_uri": self._policy.redirect_uri,
            "scope": " ".join(self._policy.scopes),
            "state": _base64url(shown.encode()),
            "nonce": nonce,
            "code_challenge": _base64url(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        })  # fmt: skip
        location = metadata.authorization + ("&" if "?" in metadata.authorization else "?") + query
        fields = [self._cookie(self._login_prefix + number, self._logins.seal(content.encode()), LOGIN_SECONDS)]
        pending = list(self._logins_of(ctx))
        fields += [self._cookie(name, "", 0) for name in pending[: max(len(pending) + 1 - MAX_LOGINS, 0)]]
        return Reply(302, b"", ((b"location", location.encode()), NO_STORE, *fields), "Oidc")

    async def _finish_login(self, ctx: RequestContext) -> Reply:
        """Return the response to the provider's redirect (RFC 6749 section 4.1.2)."""
        if ctx.method != "GET":
            raise Failure(400, "invalid callback")
        given = _parameters(ctx.target)
        number, state = _read_state(given.get("state"))
        name = self._login_prefix + number
        content = self._logins.open(self._logins_of(ctx).get(name, ""))
        login = None if content is None else json.loads(content)
        if login is None or login["until"] < time.time():
            raise Failure(400, "the login has expired or was started elsewhere")
        if not hmac.compare_digest(login["state"].encode(), state.encode()):
            raise Failure(400, "csrf state mismatch")
        gone = self._cookie(name, "", 0)
        try:
            session = await self._exchange(given, login, ctx)
            cookie = self._seal(session)
        except Failure as error:
            return _failed(error.status, str(error), gone)
        except ProviderError as error:
            return _failed(400 if str(error) == "nonce mismatch" else 500, str(error), gone)
        target = login["target"].encode()
        return Reply(302, b"", ((b"location", target), NO_STORE, cookie, gone), "Oidc")

    async def _exchange(self, given: dict[str, str], login: dict[str, Any], ctx: RequestContext) -> OidcSession:
        metadata = await self.provider.metadata()
        issuer = given.get("iss")
        if issuer != self._policy.issuer and (issuer is not None or metadata.names_issuer):
            raise Failure(400, "the response is from another provider")  # RFC 9207 section 2.4
        if "error" in given:
            raise Failure(400, f"the provider returned {_printable(given['error'])}")
        if not given.get("code"):
            raise Failure(400, "invalid callback")
        found = await self.provider.tokens({
            "grant_type": "authorization_code",
            "code": given["code"],
            "redirect_uri": self._policy.redirect_uri,
            "code_verifier": login["verifier"],
        }, ctx)  # fmt: skip
        claims = await self.provider.verified(found.get("id_token"), login["nonce"], ctx)
        return _session(found, claims, None)

    # -- renewal and logout ------------------------------------------------------------------------------------------
    def _may_renew(self, credential: bytes) -> bool:
        """Return True if this request must renew the session. Only one request of all workers does; others continue
        with the old session.

        A provider treats the second use of a refresh token as theft.
        """
        place = int.from_bytes(hashlib.sha256(credential).digest()[:4]) % RENEW_PLACES
        bucket = self._renewals.get(place)
        if bucket is None:
            # The object is kept, because a bucket that no process holds is reset.
            bucket = TokenBucket(self._segment, b"oidc renewal\0%d" % place, 1, 1, int(RENEW_PAUSE) * NS_PER_S)
            self._renewals[place] = bucket
        return bool(bucket.take_at(1, time.monotonic_ns())[0])

    async def _renewed(
        self, step: IdentityStep, ctx: RequestContext, credential: bytes, session: OidcSession
    ) -> None:
        """Renew the session at the provider. If that fails, the session continues unchanged."""
        try:
            form = {"grant_type": "refresh_token", "refresh_token": session.refresh or ""}
            found = await self.provider.tokens(form, ctx)
            claims = await self.provider.verified(found.get("id_token"), None, ctx)
            if claims["sub"] != session.claims["sub"]:
                raise ProviderError("the ID token is not valid")
            renewed = _session(found, claims, session.refresh)
            name, value = self._seal(renewed)
        except (Failure, ProviderError):
            _admit(step, ctx, credential, session, min(RENEW_PAUSE, session.expires - time.time()))
            return
        ctx.add_response_header(name.decode(), value.decode())
        # Further requests with the old cookie get the renewed session.
        _admit(step, ctx, credential, renewed, min(60.0, renewed.expires - time.time()))

    async def _end(self, ctx: RequestContext, session: OidcSession | None) -> Reply:
        """Log out at the gateway and, if the provider supports it, at the provider.

        Source: https://openid.net/specs/openid-connect-rpinitiated-1_0.html
        """
        if ctx.request.get("sec-fetch-site") == "cross-site":
            raise Failure(400, "logout from another site")
        gone = self._cookie(self._session_cookie, "", 0)
        metadata = await self.provider.metadata()
        if metadata.logout is None or session is None:
            return Reply(200, b"logged out\n", (TEXT, NO_STORE, gone), "Oidc")
        query = urlencode({"id_token_hint": session.token, "client_id": self._policy.client_id})
        location = metadata.logout + ("&" if "?" in metadata.logout else "?") + query
        return Reply(302, b"", ((b"location", location.encode()), NO_STORE, gone), "Oidc")


def _admit(step: IdentityStep, ctx: RequestContext, credential: bytes, session: OidcSession, seconds: float) -> None:
    step.admit(ctx, credential, (session.claims, session.token.encode()), max(seconds, 0.0))


def _session(found: dict[str, Any], claims: dict[str, Any], refresh: str | None) -> OidcSession:
    now = time.time()
    expires = min(float(claims["exp"]), now + SESSION_SECONDS)
    if expires <= now:
        raise ProviderError("the ID token has expired")
    renewed = found.get("refresh_token")
    return OidcSession(found["id_token"], claims, now, expires, renewed if isinstance(renewed, str) else refresh)


def _claims(token: str) -> dict[str, Any]:
    """Return the claims of a token that was verified before it was sealed."""
    part = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


def _failed(status: int, text: str, *fields: tuple[bytes, bytes]) -> Reply:
    return Reply(status, f"oidc failure: {text}".encode(), (TEXT, NO_STORE, *fields), "Oidc")


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _is_local(target: str) -> bool:
    """Return True if a redirect to `target` stays on this site."""
    return (
        len(target) <= MAX_RETURN
        and target.startswith("/")
        and not target.startswith(("//", "/\\"))
        and target.isascii()
        and target.isprintable()
    )


def _parameters(target: str) -> dict[str, str]:
    """Return the parameters of a callback; raises Failure if one appears twice."""
    pairs = parse_qsl(target.partition("?")[2], keep_blank_values=True)
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Failure(400, "invalid callback")
    return found


def _read_state(text: str | None) -> tuple[str, str]:
    try:
        found = json.loads(base64.b64decode((text or "").encode() + b"==", altchars=b"-_"))
        number, state = found["transactionId"], found["csrfState"]
        if isinstance(number, str) and isinstance(state, str):
            return number, state
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise Failure(400, "invalid callback")


def _printable(text: str) -> str:
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in text[:64])


def compile_oidc(policy: Oidc, env: Environment) -> OidcStep:
    """Return the step of `oidc`; raises ValueError if an inline discovery document is invalid."""
    return OidcPolicy(policy, env).step()
