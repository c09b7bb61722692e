"""An OpenID provider: its metadata, its keys, and the calls to its token endpoint.

Sources: https://openid.net/specs/openid-connect-core-1_0.html,
https://openid.net/specs/openid-connect-discovery-1_0.html, and RFC 6749 for the token endpoint.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from headgate.crypto.jws import Checks, TokenError, UnknownKey, verify
from headgate.document.lazy_dataclass import dataclass
from headgate.ir.policy.document_source import DocumentSource
from headgate.ir.policy.oidc import Oidc, TokenAuth
from headgate.policy.environment import Environment
from headgate.policy.key_sets import KeyStore
from headgate_engine.context.request import RequestContext, log_extra
from headgate_engine.link.client import CallError

logger = logging.getLogger("headgate.oidc")

CALL_SECONDS: Final = 10.0
MAX_ANSWER: Final = 64 * 1024
METADATA_SECONDS: Final = 3600.0
# Pause after a failed fetch of the metadata.
PAUSE_SECONDS: Final = 5.0


class ProviderError(Exception):
    """The provider failed. The text gives the reason and contains no secret."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """The provider's endpoints. `logout` is the endpoint of RP-initiated logout. `names_issuer`: authorization
    responses have the parameter `iss` (RFC 9207).
    """

    authorization: str
    token: DocumentSource
    keys: DocumentSource
    token_auth: TokenAuth
    logout: str | None = None
    names_issuer: bool = False


def parse_metadata(document: str | bytes, issuer: str) -> Metadata:
    """Return the metadata in a discovery document (Discovery 1.0 section 3); raises ValueError if it is invalid."""
    found = json.loads(document)
    if not isinstance(found, dict):
        raise ValueError("the metadata is not an object")
    if found.get("issuer") != issuer:
        raise ValueError("the metadata is for another issuer")
    texts = {key: found.get(key) for key in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
    for key, value in texts.items():
        if not isinstance(value, str):
            raise ValueError(f"the metadata has no {key}")
    methods = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    auth: TokenAuth
    if not isinstance(methods, list):
        raise ValueError("the metadata has no list of token_endpoint_auth_methods_supported")
    if "client_secret_basic" in methods:
        auth = "clientSecretBasic"
    elif "client_secret_post" in methods:
        auth = "clientSecretPost"
    else:
        raise ValueError("the token endpoint of the provider does not accept a client secret")
    authorization = str(texts["authorization_endpoint"])
    logout = found.get("end_session_endpoint")
    for url in (authorization, logout):
        if url is not None and not isinstance(url, str):
            raise ValueError("end_session_endpoint must be a string")
        if url is not None:
            DocumentSource.remote(url)  # the URL goes into a location field
    return Metadata(
        authorization=authorization,
        token=DocumentSource.remote(str(texts["token_endpoint"])),
        keys=DocumentSource.remote(str(texts["jwks_uri"])),
        token_auth=auth,
        logout=logout,
        names_issuer=found.get("authorization_response_iss_parameter_supported") is True,
    )


class Provider:
    """The provider of one policy in one worker."""

    def __init__(self, policy: Oidc, env: Environment) -> None:
        self._policy = policy
        self._env = env
        self._checks = Checks(policy.issuer, (policy.client_id,), frozenset(("exp", "sub")))
        self._metadata: Metadata | None = None
        self._good_until = 0.0
        self._not_before = 0.0
        self._fetching: asyncio.Task[None] | None = None
        explicit = policy.endpoints
        if explicit is not None:
            self._metadata = Metadata(
                explicit.authorization, explicit.token, explicit.keys, explicit.token_auth
            )
            self._good_until = float("inf")
        elif policy.discovery is not None and policy.discovery.document is not None:
            self._metadata = parse_metadata(policy.discovery.document, policy.issuer)
            self._good_until = float("inf")

    @property
    def known(self) -> Metadata | None:
        """Return the metadata if it is loaded and fresh, else None."""
        return self._metadata if time.monotonic() < self._good_until else None

    async def metadata(self) -> Metadata:
        """Return the metadata and fetch it if it is missing or old; raises ProviderError if none is available."""
        if self.known is None and time.monotonic() >= self._not_before:
            if self._fetching is None:
                self._fetching = self._env.spawn(f"oidc metadata {self._policy.issuer}", self._fetch())
            await asyncio.wait([self._fetching])
        if self._metadata is None:
            raise ProviderError("the provider's metadata cannot be fetched")
        return self._metadata

    async def _fetch(self) -> None:
        source = self._policy.discovery
        assert source is not None
        try:
            status, body = await self._call(source, "GET", [("accept", "application/json")], None)
            if status != 200:
                raise ValueError(f"status {status}")
            self._metadata = parse_metadata(body, self._policy.issuer)
            self._good_until = time.monotonic() + METADATA_SECONDS
        except (CallError, ValueError, TimeoutError, OSError, RecursionError) as error:
            self._not_before = time.monotonic() + PAUSE_SECONDS
            reason = str(error) or type(error).__name__
            logger.warning("cannot fetch metadata", extra={"url": source.shown, "error": reason})
        finally:
            self._fetching = None

    async def _call(
        self, source: DocumentSource, method: str, headers: list[tuple[str, str]], body: bytes | None
    ) -> tuple[int, bytes]:
        assert source.endpoint is not None
        async with asyncio.timeout(CALL_SECONDS):
            client = self._env.client(source.endpoint, subtype="Oidc")
            response = await client.request(method, source.path, headers, body)
            try:
                return response.status, await response.read(MAX_ANSWER)
            finally:
                await response.aclose()

    async def tokens(self, form: dict[str, str], ctx: RequestContext) -> dict[str, Any]:
        """Return the token endpoint's response to a grant; raises ProviderError."""
        metadata = await self.metadata()
        headers = [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")]
        secret = self._policy.client_secret.reveal()
        if metadata.token_auth == "clientSecretBasic":  # noqa: S105 (the name of a method)
            # RFC 6749 section 2.3.1: both parts are form-encoded before they are joined.
            pair = f"{quote_plus(self._policy.client_id)}:{quote_plus(secret)}"
            headers.append(("authorization", "Basic " + base64.b64encode(pair.encode()).decode()))
        else:
            form = {**form, "client_id": self._policy.client_id, "client_secret": secret}
        try:
            status, body = await self._call(metadata.token, "POST", headers, urlencode(form).encode())
            found = json.loads(body)
            if not isinstance(found, dict):
                raise ValueError("the response is not an object")
        except (CallError, ValueError, TimeoutError, OSError, RecursionError) as error:
            reason = str(error) or type(error).__name__
            logger.warning("token call failed", extra=log_extra(ctx, url=metadata.token.shown, error=reason))
            raise ProviderError("the token exchange failed") from None
        if status != 200:
            code = str(found.get("error"))[:64]
            fields = log_extra(ctx, url=metadata.token.shown, status=status, error=code)
            logger.warning("token call refused", extra=fields)
            raise ProviderError("the token exchange failed")
        return found

    async def verified(self, token: object, nonce: str | None, ctx: RequestContext) -> dict[str, Any]:
        """Return the claims of an ID token (Core 1.0 section 3.1.3.7). A `nonce` of None is not checked.

        Raises ProviderError if the token is invalid.
        """
        if not isinstance(token, str) or not token.isascii():
            raise ProviderError("the provider sent no ID token")
        store = self._env.key_store((await self.metadata()).keys)
        try:
            claims = await self._verify(token.encode(), store)
        except TokenError as error:
            logger.warning("ID token refused", extra=log_extra(ctx, issuer=self._policy.issuer, error=str(error)))
            raise ProviderError("the ID token is not valid") from None
        audience = claims["aud"]
        if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != self._policy.client_id:
            raise ProviderError("the ID token is not valid")
        if nonce is not None and claims.get("nonce") != nonce:
            raise ProviderError("nonce mismatch")
        return claims

    async def _verify(self, token: bytes, store: KeyStore) -> dict[str, Any]:
        try:
            return verify(token, store.keys, self._checks, time.time())
        except UnknownKey:
            if not store.may_refetch:
                raise
        await store.refetch()
        return verify(token, store.keys, self._checks, time.time())
