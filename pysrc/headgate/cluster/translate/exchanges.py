"""Exchange of a client's token for another one, as `backendAuth` of the file has it (RFC 8693, RFC 7523)."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.called_services import ServiceReader
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.secrets import entry, pem

# https://www.rfc-editor.org/rfc/rfc8693#section-3
_TYPES: Final = {
    "AccessToken": "urn:ietf:params:oauth:token-type:access_token",
    "Jwt": "urn:ietf:params:oauth:token-type:jwt",
    "IdToken": "urn:ietf:params:oauth:token-type:id_token",
}
_LISTS: Final = ("audiences", "resources", "scopes", "additionalParams")


class ExchangeReader:
    """Reads exchanges of an object of one namespace, where its Secrets are. `services`: what they call."""

    def __init__(self, snapshot: Snapshot, namespace: str, services: ServiceReader) -> None:
        self._snapshot = snapshot
        self._namespace = namespace
        self._services = services

    def exchange(self, value: Json) -> Json:
        """Return `oauthTokenExchange`."""
        found = self._endpoint(value) | {name: value[name] for name in _LISTS if name in value}
        if "grantType" in value:
            found["grantType"] = value["grantType"]
        if "subjectToken" in value:
            found["subjectToken"] = _token(value["subjectToken"])
        if actor := value.get("actorToken"):
            found["actorToken"] = _token(actor) | {"enforceMayAct": actor.get("mayAct") == "Required"}
        if "requestedTokenType" in value:
            found["requestedTokenType"] = _type(value["requestedTokenType"])
        if "location" in value:
            found["authorizationLocation"] = value["location"]
        return found | _cache(value)

    def cross_app(self, value: Json) -> Json:
        """Return `crossAppAccess`."""
        places = ("identityProvider", "resourceAuthorizationServer")
        found: Json = {name: self._endpoint(value[name]) for name in places}
        names = ("audience", "resources", "scopes", "accessTokenScopes")
        found |= {name: value[name] for name in names if name in value}
        if "subjectToken" in value:
            found["subjectToken"] = _token(value["subjectToken"])
        return found | _cache(value)

    def _endpoint(self, value: Json) -> Json:
        """Return where tokens are exchanged, with the gateway's own credentials there."""
        if "url" in value:
            parts = urlsplit(value["url"])
            found = self._services.place({"url": f"{parts.scheme}://{parts.netloc}"}) | {"path": parts.path or "/"}
        else:
            found = self._services.place({"backendRef": value["backendRef"]}) | {"path": value.get("path", "/")}
        return found | ({"clientAuth": self._client(value["clientAuth"])} if "clientAuth" in value else {})

    def _client(self, value: Json) -> Json:
        method = value.get("method", "ClientSecretBasic")
        found: Json = {"clientId": value["clientId"], "method": method[0].lower() + method[1:]}
        if "secretRef" in value:
            found["clientSecret"] = self._entry(value["secretRef"], "clientSecret")
        if method != "PrivateKeyJwt":
            return found
        said = value["privateKeyJwt"]
        found |= {name: said[name] for name in ("alg", "kid", "assertionAudience", "certificateHeader") if name in said}
        found["signingKey"] = self._entry(said["signingKeyRef"], "signingKey")
        if reference := said.get("certificateRef"):
            key = reference.get("key") or "certificate"
            found["certificate"] = pem(self._snapshot, self._namespace, reference, key)
        return found

    def _entry(self, reference: Json, default: str) -> str:
        # A line that ends a Secret made from a file is no part of a credential.
        return entry(self._snapshot, self._namespace, reference, default).rstrip("\r\n")


def _token(value: Json) -> Json:
    found: Json = {"source": value["source"]} if "source" in value else {}
    return found | ({"tokenType": _type(value["tokenType"])} if "tokenType" in value else {})


def _type(word: str) -> str:
    if word not in _TYPES:
        raise ValueError(f"tokens of type {word} are what crossAppAccess is for")
    return _TYPES[word]


def _cache(value: Json) -> Json:
    return {"cache": dict(value["cache"]["inMemory"])} if (value.get("cache") or {}).get("inMemory") else {}
