"""Google tokens, obtained by the vendor's library. It runs in threads and is imported only here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from headgate.ir.policy.cloud_auth import GcpAuth
from headgate.policy.cloud.calls import CALL_SECONDS, Calls, CloudResponse
from headgate.policy.cloud.refresher import CredentialError, Fetched, silence

SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
# Assumed lifetime of a token without an expiry.
DEFAULT_SECONDS: Final = 300.0


class Google:
    """Tokens of one credential."""

    def __init__(self, auth: GcpAuth, calls: Calls) -> None:
        self._auth = auth
        self._calls = calls
        self._found: Any = None

    async def __call__(self) -> Fetched:
        """Return a new token; raises CredentialError."""
        loop = asyncio.get_running_loop()
        return await asyncio.to_thread(self._token, loop)

    def _token(self, loop: asyncio.AbstractEventLoop) -> Fetched:
        from google.auth.exceptions import GoogleAuthError

        silence("google")
        request = _request(self._calls, loop)
        try:
            if self._found is None:
                self._found = self._credentials(request)
            self._found.refresh(request)
            token, expiry = self._found.token, self._found.expiry
        except (GoogleAuthError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            # The arguments of these errors may contain responses of token endpoints, so only the error's type is shown.
            raise CredentialError(f"Google credentials: {_reason(error)}") from None
        if not token:
            raise CredentialError("Google credentials: there is no token")
        # The library's times are in UTC, without a time zone.
        lives = DEFAULT_SECONDS if expiry is None else (expiry.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()
        return Fetched(token.encode(), lives)

    def _credentials(self, request: Any) -> Any:
        import google.auth

        auth = self._auth
        if auth.kind == "idToken":
            return _id_token_credentials(auth, request)
        if auth.credential is None:
            return google.auth.default(scopes=SCOPES, request=request)[0]
        return _loaded(json.loads(auth.credential.secret.reveal()), request)


def _loaded(info: Mapping[str, Any], request: Any) -> Any:
    import google.auth
    from google.oauth2 import credentials, service_account

    if info["type"] == "service_account":
        kind = service_account.Credentials
        return kind.from_service_account_info(info, scopes=SCOPES)  # type: ignore[no-untyped-call]
    if info["type"] == "authorized_user":
        return credentials.Credentials.from_authorized_user_info(info, scopes=SCOPES)  # type: ignore[no-untyped-call]
    # External accounts and impersonation: the library distinguishes the types.
    return google.auth.load_credentials_from_dict(info, scopes=SCOPES, request=request)[0]  # type: ignore[no-untyped-call]


def _id_token_credentials(auth: GcpAuth, request: Any) -> Any:
    from google.oauth2 import id_token, service_account

    if auth.credential is None:
        return id_token.fetch_id_token_credentials(auth.audience, request=request)  # type: ignore[no-untyped-call]
    info = json.loads(auth.credential.secret.reveal())
    if info["type"] == "service_account":
        found = service_account.IDTokenCredentials
        return found.from_service_account_info(info, target_audience=auth.audience)  # type: ignore[no-untyped-call]
    source = _loaded(info, request)
    if info["type"] == "impersonated_service_account":
        from google.auth import impersonated_credentials

        return impersonated_credentials.IDTokenCredentials(  # type: ignore[no-untyped-call]
            source, target_audience=auth.audience, include_email=True
        )
    raise CredentialError(f"credentials of type {info['type']} give no ID tokens")


def _reason(error: Exception) -> str:
    if isinstance(error, CredentialError):
        return str(error)
    cause = error.__cause__
    return str(cause) if isinstance(cause, CredentialError) else type(error).__name__


def _request(calls: Calls, loop: asyncio.AbstractEventLoop) -> Any:
    """Return the library's HTTP transport: a callable for other threads that uses the engine's pools."""
    from google.auth import transport
    from google.auth.exceptions import TransportError

    class Response(transport.Response):
        """A response with the library's interface."""

        def __init__(self, answer: CloudResponse) -> None:
            self._answer = answer

        @property
        def status(self) -> int:
            return self._answer.status

        @property
        def headers(self) -> dict[str, str]:
            return self._answer.headers

        @property
        def data(self) -> bytes:
            return self._answer.body

    class Request(transport.Request):
        """A blocking call with the library's interface."""

        def __call__(
            self,
            url: str,
            method: str = "GET",
            body: bytes | str | None = None,
            headers: Mapping[str, str] | None = None,
            timeout: float | None = None,
            **_: Any,
        ) -> Response:
            sent = body.encode() if isinstance(body, str) else body
            pairs = [(name.lower(), value) for name, value in (headers or {}).items()]
            pairs = [(name, value) for name, value in pairs if name not in ("host", "content-length")]
            seconds = min(timeout or CALL_SECONDS, CALL_SECONDS)
            work = calls.call(method, url, pairs, sent, seconds)
            try:
                # The time-out covers an event loop that has ended: it never responds.
                return Response(asyncio.run_coroutine_threadsafe(work, loop).result(seconds + 1))
            except CredentialError as error:
                raise TransportError(str(error)) from error  # type: ignore[no-untyped-call]

    return Request()
