"""`oidc`: browser login by the authorization code flow with PKCE (RFC 7636); the session is a sealed cookie.

Nothing is kept here: a login under way is a cookie of its own, so that any worker or replica with the same cookie key
may finish it. A session may be renewed with the provider's refresh token before it ends.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from headgate.crypto.sealed import Sealer
from headgate.ir.policy.oidc import Oidc
from headgate.policy.environment import Environment
from headgate.policy.oidc_provider import Metadata, Provider, ProviderError
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.limit.bucket import TokenBucket
from headgate_engine.steps.session import OidcStep

TEXT: Final = (b"content-type", b"text/plain")
NO_STORE: Final = (b"cache-control", b"no-store")
LOGIN_SECONDS: Final = 300
SESSION_SECONDS: Final = 3600
MAX_COOKIE: Final = 3800
MAX_RETURN: Final = 2048
# Logins of one browser that may be under way; the oldest goes when another begins.
MAX_LOGINS: Final = 5
# A session is renewed when so much of its life is over; a try that failed is repeated so many seconds later.
RENEW_SHARE: Final = 0.75
RENEW_PAUSE: Final = 10.0
RENEW_PLACES: Final = 1024
NS_PER_S: Final = 1_000_000_000


class Failure(Exception):
    """The login cannot go on: `status` and text of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Session:
    """An ID token with its claims; times are Unix seconds."""

    token: str
    claims: dict[str, Any]
    issued: float
    expires: float
    refresh: str | None = None

    @property
    def renew_at(self) -> float:
        """When it is time to renew it; its end when it cannot be."""
        if self.refresh is None:
            return self.expires
        return self.issued + (self.expires - self.issued) * RENEW_SHARE


class OidcPolicy:
    """One policy in one worker."""

    def __init__(self, policy: Oidc, env: Environment) -> None:
        self._policy = policy
        self._segment = env.segment
        # At most RENEW_PLACES buckets, by place.
        self._renewals: dict[int, TokenBucket] = {}
        self.provider = Provider(policy, env)
        key = bytes.fromhex(policy.cookie_key.reveal())
        self._sessions = Sealer(key, f"oidc session {policy.key}")
        self._logins = Sealer(key, f"oidc login {policy.key}")
        redirect = urlsplit(policy.redirect_uri)
        self._callback, self._logout = redirect.path, redirect.path + "/logout"
        self._session_cookie = f"gw_oidc_s_{policy.key}"
        self._login_prefix = f"gw_oidc_t_{policy.key}."
        self._attributes = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if redirect.scheme == "https" else "")
        self.step = OidcStep(
            self._session_cookie, self._login_prefix, self._callback, self._logout, self.judge
        )

    # -- which of the requests it is ---------------------------------------------------------------------------------
    def judge(self, ctx: RequestContext, credential: bytes | None) -> Awaitable[Reply | None] | Reply | None:
        """Answer callback and logout, admit who has a session, send others to the provider."""
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
            return self._renewed(ctx, credential, session)
        until = session.renew_at if now < session.renew_at else min(now + RENEW_PAUSE, session.expires)
        self._admit(ctx, credential, session, until - now)
        return None

    def _admit(self, ctx: RequestContext, credential: bytes, session: Session, seconds: float) -> None:
        self.step.admit(ctx, credential, (session.claims, session.token.encode()), max(seconds, 0.0))

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

    def _seal(self, session: Session) -> tuple[bytes, bytes]:
        """Return the field that sets the session's cookie; without refresh token when it is too long with it."""
        seconds = int(session.expires - time.time())
        for refresh in dict.fromkeys((session.refresh, None)):
            content = json.dumps([session.token, session.issued, session.expires, refresh])
            name, value = self._cookie(self._session_cookie, self._sessions.seal(content.encode()), seconds)
            if len(value) <= MAX_COOKIE:
                return name, value
        raise Failure(500, "the session does not fit into a cookie")

    def _open(self, credential: bytes) -> Session | None:
        content = self._sessions.open(credential)
        if content is None:
            return None
        token, issued, expires, refresh = json.loads(content)
        return Session(token, _claims(token), issued, expires, refresh)

    def _logins_of(self, ctx: RequestContext) -> dict[str, str]:
        """Return the cookies of logins under way, oldest first (RFC 6265 section 5.4)."""
        found: dict[str, str] = {}
        for line in ctx.request.get_list("cookie"):
            for part in line.split(";"):
                name, _, value = part.strip().partition("=")
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
        """Return the redirect to the provider, and the cookie that remembers what it was for."""
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
        """Answer the provider's redirect back to us."""
        if ctx.method != "GET":
            raise Failure(400, "invalid callback")
        given = _parameters(ctx.target)
        number, state = _read_state(given.get("state"))
        name = self._login_prefix + number
        content = self._logins.open(self._logins_of(ctx).get(name, ""))
        login = None if content is None else json.loads(content)
        if login is None or login["until"] < time.time():
            raise Failure(400, "the login has expired or was begun elsewhere")
        if not hmac.compare_digest(login["state"].encode(), state.encode()):
            raise Failure(400, "csrf state mismatch")
        gone = self._cookie(name, "", 0)
        try:
            session = await self._exchange(given, login)
            cookie = self._seal(session)
        except Failure as error:
            return _failed(error.status, str(error), gone)
        except ProviderError as error:
            return _failed(400 if str(error) == "nonce mismatch" else 500, str(error), gone)
        target = login["target"].encode()
        return Reply(302, b"", ((b"location", target), NO_STORE, cookie, gone), "Oidc")

    async def _exchange(self, given: dict[str, str], login: dict[str, Any]) -> Session:
        metadata = await self.provider.metadata()
        issuer = given.get("iss")
        if issuer != self._policy.issuer and (issuer is not None or metadata.names_issuer):
            raise Failure(400, "the answer is of another provider")  # RFC 9207 section 2.4
        if "error" in given:
            raise Failure(400, f"the provider returned {_printable(given['error'])}")
        if not given.get("code"):
            raise Failure(400, "invalid callback")
        found = await self.provider.tokens({
            "grant_type": "authorization_code",
            "code": given["code"],
            "redirect_uri": self._policy.redirect_uri,
            "code_verifier": login["verifier"],
        })  # fmt: skip
        claims = await self.provider.verified(found.get("id_token"), login["nonce"])
        return _session(found, claims, None)

    # -- a session's later life --------------------------------------------------------------------------------------
    def _may_renew(self, credential: bytes) -> bool:
        """Tell whether this request renews the session: one of all workers does, the others go on with what they have.

        A provider takes a refresh token that is used twice for a stolen one.
        """
        place = int.from_bytes(hashlib.sha256(credential).digest()[:4]) % RENEW_PLACES
        bucket = self._renewals.get(place)
        if bucket is None:
            # Kept: what no process holds begins anew.
            bucket = TokenBucket(self._segment, b"oidc renewal\0%d" % place, 1, 1, int(RENEW_PAUSE) * NS_PER_S)
            self._renewals[place] = bucket
        return bool(bucket.take_at(1, time.monotonic_ns())[0])

    async def _renewed(self, ctx: RequestContext, credential: bytes, session: Session) -> None:
        """Renew the session if the provider lets us; it goes on as it is otherwise."""
        try:
            form = {"grant_type": "refresh_token", "refresh_token": session.refresh or ""}
            found = await self.provider.tokens(form)
            claims = await self.provider.verified(found.get("id_token"), None)
            if claims["sub"] != session.claims["sub"]:
                raise ProviderError("the ID token is not valid")
            renewed = _session(found, claims, session.refresh)
            name, value = self._seal(renewed)
        except (Failure, ProviderError):
            self._admit(ctx, credential, session, min(RENEW_PAUSE, session.expires - time.time()))
            return
        ctx.add_response_header(name.decode(), value.decode())
        # Requests that were sent with the old cookie are the same session.
        self._admit(ctx, credential, renewed, min(60.0, renewed.expires - time.time()))

    async def _end(self, ctx: RequestContext, session: Session | None) -> Reply:
        """Log out: here, and at the provider if it can (RP-Initiated Logout 1.0)."""
        if ctx.request.get("sec-fetch-site") == "cross-site":
            raise Failure(400, "logout from another site")
        gone = self._cookie(self._session_cookie, "", 0)
        metadata = await self.provider.metadata()
        if metadata.logout is None or session is None:
            return Reply(200, b"logged out\n", (TEXT, NO_STORE, gone), "Oidc")
        query = urlencode({"id_token_hint": session.token, "client_id": self._policy.client_id})
        location = metadata.logout + ("&" if "?" in metadata.logout else "?") + query
        return Reply(302, b"", ((b"location", location.encode()), NO_STORE, gone), "Oidc")


def _session(found: dict[str, Any], claims: dict[str, Any], refresh: str | None) -> Session:
    now = time.time()
    expires = min(float(claims["exp"]), now + SESSION_SECONDS)
    if expires <= now:
        raise ProviderError("the ID token has expired")
    renewed = found.get("refresh_token")
    return Session(found["id_token"], claims, now, expires, renewed if isinstance(renewed, str) else refresh)


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
    """Tell whether a browser stays on this site when it is sent there."""
    return (
        len(target) <= MAX_RETURN
        and target.startswith("/")
        and not target.startswith(("//", "/\\"))
        and target.isascii()
        and target.isprintable()
    )


def _parameters(target: str) -> dict[str, str]:
    """Return the parameters of a callback; one that is there twice makes it invalid."""
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
    """Return the step of `oidc`; ValueError when a discovery document at hand cannot be used."""
    return OidcPolicy(policy, env).step
