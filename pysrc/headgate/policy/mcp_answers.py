"""Clients whose authorization answers come back through the gateway: their ids, requests and answers (RFC 9207).

An id that a client gets holds its id at the provider and its redirect URIs, sealed: nothing is kept here, and every
worker and replica can read it. Requests of clients that were not registered here pass as they are: the provider knows
their redirect URIs.
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
    Answer,
    Client,
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

# Somebody has to find a password, or to set up a second factor.
LOGIN_SECONDS: Final = 3600.0
TAG_BYTES: Final = 16
CALLBACK_PATH: Final = re.compile(CALLBACK + r"(?:/([A-Za-z0-9_-]{22}))?$")


class Seals:
    """Makes and reads client ids and states. `sealer(purpose)`: of the key that all workers and replicas have."""

    def __init__(self, issuer: str, sealer: Callable[[str], Sealer]) -> None:
        self._clients = sealer(f"oauth client {issuer}")
        self._states = sealer(f"oauth state {issuer}")

    def client_id(self, client: Client) -> str:
        """Return the id that a client gets."""
        return self._clients.seal(json.dumps(client, separators=(",", ":")).encode())

    def client(self, client_id: str) -> Client | None:
        """Return the client of an id; None for one that was not made here."""
        content = self._clients.open(client_id)
        if content is None:
            return None
        found, uris, callback, tag = json.loads(content)
        return Client(found, tuple(uris), callback, tag)

    def state(self, answer: Answer) -> str:
        """Return the state that the provider gets."""
        content = [*answer, int(time.time() + LOGIN_SECONDS)]
        return self._states.seal(json.dumps(content, separators=(",", ":")).encode())

    def answer(self, state: str) -> Answer | None:
        """Return what a state says; None for one that was not made here, or is too old."""
        content = self._states.open(state)
        if content is None:
            return None
        *found, until = json.loads(content)
        return None if until < time.time() else Answer(*found)


class Answers:
    """`issuer`: the provider. `own`: id and redirect URIs of the one client that everybody uses, if there is one."""

    def __init__(self, issuer: str, own: tuple[str, tuple[str, ...]] | None, seals: Seals) -> None:
        self._issuer = issuer
        self._own = own
        self._seals = seals

    @staticmethod
    def wanted(document: Mapping[str, Any]) -> bool:
        """Tell whether a provider names itself in its answers."""
        return document.get(NAMES_ISSUER) is True

    def _client(self, client_id: str, url: str) -> Client | None:
        if self._own is not None and client_id == self._own[0]:
            return Client(*self._own, url + CALLBACK, "")
        return self._seals.client(client_id)

    def authorize(self, query: str, url: str) -> str:
        """Return the query of an authorization request as the provider gets it; RequestError. `url`: the metadata's."""
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
        state = self._seals.state(Answer(uri, given.get("state"), issuer_of(url), client.tag))
        found = exchanged(query, client_id=client.id, redirect_uri=client.callback, state=state)
        return found if "state" in given else f"{found}&{urlencode({'state': state})}"

    def returned(self, query: str, tag: str) -> str:
        """Return where a client gets the provider's answer; RequestError. `tag`: of the redirect URI it came to."""
        given = parameters(query)
        answer = self._seals.answer(given.pop("state", ""))
        # The provider sends a client's code to that client's redirect URI alone, so the tag tells whose code it is: a
        # state that somebody was given for a client of his own does not lead another client's code to him.
        if answer is None or answer.tag != tag:
            raise RequestError("the login has expired or was begun elsewhere")
        if given.pop("iss", None) != self._issuer:
            raise RequestError("the answer is of another issuer")  # RFC 9207 section 2.4
        if answer.state is not None:
            given["state"] = answer.state
        return extended(answer.uri, {**given, "iss": answer.issuer})

    def token(self, form: str, authorization: str | None, url: str) -> tuple[str, str | None]:
        """Return form and `authorization` of a token request as the provider gets them; RequestError."""
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

    def registration(self, body: bytes, url: str) -> tuple[bytes, Client]:
        """Return a registration as the provider gets it, and the client as far as it is known; RequestError."""
        tag = secrets.token_urlsafe(TAG_BYTES)
        callback = f"{url}{CALLBACK}/{tag}"
        changed, uris = registration(body, callback)
        return changed, Client("", uris, callback, tag)

    def registered(self, answer: bytes, client: Client) -> bytes | None:
        """Return the answer to a registration as the client gets it; None when the provider's cannot be read.

        What leads to the registration at the provider is left out: a change there would go past the gateway.
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
