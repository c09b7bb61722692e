"""Relays authorization responses of the provider through the gateway, with client ids and states of its own (RFC 9207).

The client id that the gateway issues contains the provider's client id and the redirect URIs in sealed form. The
gateway stores nothing, and every worker and replica can open the id. Requests of clients that the gateway did not
register are forwarded unchanged: the provider knows their redirect URIs.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from headgate.crypto.sealed import Sealer
from headgate.dialect.oauth_answers import (
    CALLBACK,
    NAMES_ISSUER,
    REFUSED,
    AuthorizationResponse,
    OauthClient,
    RequestError,
    basic,
    basic_client,
    exchanged,
    extended,
    is_registered,
    issuer_of,
    parameters,
    registration,
)

# Time for a user to log in, including finding a password or setting up a second factor.
LOGIN_SECONDS: Final = 3600.0
TAG_BYTES: Final = 16
CALLBACK_PATH: Final = re.compile(CALLBACK + r"(?:/([A-Za-z0-9_-]{22}))?$")


class Seals:
    """Seals and opens client ids and states. `sealer(purpose)` uses the key that all workers and replicas share."""

    def __init__(self, issuer: str, sealer: Callable[[str], Sealer]) -> None:
        self._clients = sealer(f"oauth client {issuer}")
        self._states = sealer(f"oauth state {issuer}")

    def client_id(self, client: OauthClient) -> str:
        """Return the id that the gateway issues to a client."""
        return self._clients.seal(json.dumps(client, separators=(",", ":")).encode())

    def client(self, client_id: str) -> OauthClient | None:
        """Return the client in an id, None if the gateway did not issue the id."""
        content = self._clients.open(client_id)
        if content is None:
            return None
        found, uris, callback, tag = json.loads(content)
        return OauthClient(found, tuple(uris), callback, tag)

    def state(self, answer: AuthorizationResponse) -> str:
        """Return the state for the provider."""
        content = [*answer, int(time.time() + LOGIN_SECONDS)]
        return self._states.seal(json.dumps(content, separators=(",", ":")).encode())

    def answer(self, state: str) -> AuthorizationResponse | None:
        """Return the content of a state, None if the gateway did not issue it or it has expired."""
        content = self._states.open(state)
        if content is None:
            return None
        *found, until = json.loads(content)
        return None if until < time.time() else AuthorizationResponse(*found)


class Answers:
    """Rewrites OAuth requests and responses. `issuer` is the provider; `own` is the id and the redirect URIs of the
    client that all users share, if one is configured.
    """

    def __init__(self, issuer: str, own: tuple[str, tuple[str, ...]] | None, seals: Seals) -> None:
        self._issuer = issuer
        self._own = own
        self._seals = seals

    @staticmethod
    def wanted(document: Mapping[str, Any]) -> bool:
        """Return True if the provider sends `iss` in its authorization responses (RFC 9207)."""
        return document.get(NAMES_ISSUER) is True

    def _client(self, client_id: str, url: str) -> OauthClient | None:
        if self._own is not None and client_id == self._own[0]:
            return OauthClient(*self._own, url + CALLBACK, "")
        return self._seals.client(client_id)

    def authorize(self, query: str, url: str) -> str:
        """Return the query of an authorization request for the provider; raises RequestError. `url`: the metadata."""
        given = parameters(query)
        client = self._client(given.get("client_id", ""), url)
        if client is None:
            return query
        uri = given.get("redirect_uri")
        if uri is None or not is_registered(uri, client.uris):
            raise RequestError("redirect_uri is not one of the client's")
        if any(name in given for name in REFUSED):
            raise RequestError("request objects are not supported")
        if given.get("response_type") != "code" or given.get("response_mode", "query") != "query":
            raise RequestError("only response_type code with response_mode query is supported")
        state = self._seals.state(AuthorizationResponse(uri, given.get("state"), issuer_of(url), client.tag))
        found = exchanged(query, client_id=client.id, redirect_uri=client.callback, state=state)
        return found if "state" in given else f"{found}&{urlencode({'state': state})}"

    def returned(self, query: str, tag: str) -> str:
        """Return the client's URL for the provider's response. `tag` is from the redirect URI that received the
        response.

        Raises RequestError.
        """
        given = parameters(query)
        answer = self._seals.answer(given.pop("state", ""))
        # The provider sends a client's code to that client's redirect URI only, so the tag identifies the client of the
        # code. A state that was issued to an attacker's client therefore cannot redirect another client's code to it.
        if answer is None or answer.tag != tag:
            raise RequestError("the login has expired or was started elsewhere")
        if given.pop("iss", None) != self._issuer:
            raise RequestError("the response is from another issuer")  # RFC 9207 section 2.4
        if answer.state is not None:
            given["state"] = answer.state
        return extended(answer.uri, {**given, "iss": answer.issuer})

    def token(self, form: str, authorization: str | None, url: str) -> tuple[str, str | None]:
        """Return form and `authorization` of a token request for the provider; raises RequestError."""
        given = parameters(form)
        named = None if authorization is None else basic_client(authorization)
        client = self._client(given.get("client_id", "") if named is None else named[0], url)
        if client is None:
            return form, authorization
        uri = given.get("redirect_uri")
        if uri is not None and not is_registered(uri, client.uris):
            raise RequestError("redirect_uri is not one of the client's")
        form = exchanged(form, client_id=client.id, redirect_uri=client.callback)
        return form, authorization if named is None else basic(client.id, named[1])

    def registration(self, body: bytes, url: str) -> tuple[bytes, OauthClient]:
        """Return a registration for the provider, and the client without its id; raises RequestError."""
        tag = secrets.token_urlsafe(TAG_BYTES)
        callback = f"{url}{CALLBACK}/{tag}"
        changed, uris = registration(body, callback)
        return changed, OauthClient("", uris, callback, tag)

    def registered(self, answer: bytes, client: OauthClient) -> bytes | None:
        """Return the response to a registration for the client, None if the provider's response is invalid.

        It omits the fields that give access to the registration at the provider: a change there would bypass the
        gateway.
        """
        try:
            found = json.loads(answer)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or not isinstance(found.get("client_id"), str):
            return None
        for name in ("registration_client_uri", "registration_access_token"):
            found.pop(name, None)
        own = self._seals.client_id(client._replace(id=found["client_id"]))
        return json.dumps({**found, "client_id": own, "redirect_uris": list(client.uris)}).encode()
