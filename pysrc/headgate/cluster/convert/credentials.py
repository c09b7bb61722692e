"""`backendAuth` and `backendTLS` of the file as `auth` and `tls`; what is secret goes into Secrets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headgate.cluster.convert.conversion import Conversion, renamed, spelled_words
from headgate.cluster.convert.endpoints import FIELDS, endpoint
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.translate.fragments import Json

_TLS: Final = {
    "hostname": "sni",
    "subjectAltNames": "verifySubjectAltNames",
    "alpn": "alpnProtocols",
    "keyExchangeGroups": "keyExchangeGroups",
}
_TLS_REST: Final = ("insecure", "insecureHost", "spiffe", "cert", "key", "root")
_TOKEN_TYPES: Final = {
    "urn:ietf:params:oauth:token-type:access_token": "AccessToken",
    "urn:ietf:params:oauth:token-type:jwt": "Jwt",
    "urn:ietf:params:oauth:token-type:id_token": "IdToken",
}
_KEYS: Final = {"accessKeyId": "accessKey", "secretAccessKey": "secretKey", "sessionToken": "sessionToken"}


def tls(of: Conversion, value: SaidMap) -> Json:
    """Return `tls` of a backend."""
    of.losses.rest(value, *_TLS, *_TLS_REST)
    found: Json = {theirs: value[ours] for ours, theirs in _TLS.items() if ours in value}
    if "spiffe" in value:
        found["certificateSource"] = "SPIFFE"
    if value.get("insecure") or value.get("insecureHost"):
        found["insecureSkipVerify"] = "All" if value.get("insecure") else "Hostname"
    if "cert" in value and "key" in value:
        entries = {"tls.crt": of.pem(value["cert"]), "tls.key": of.pem(value["key"])}
        name = of.objects.secret(of.namespace, f"{of.about}-certificate", entries, "kubernetes.io/tls")
        found["mtlsCertificateRef"] = [{"name": name}]
    if "root" in value:
        authority = of.objects.authority(of.namespace, f"{of.about}-authority", of.pem(value["root"]))
        found["caCertificateRefs"] = [{"name": authority, "kind": "ConfigMap"}]
    return found


def auth(of: Conversion, value: Any) -> Json:
    """Return `auth` of a backend, without what cannot be converted; an empty map for `copilot`."""
    if not isinstance(value, SaidMap):
        return {}
    readers: dict[str, Callable[[Conversion, Any], Json]] = {
        "key": _key,
        "passthrough": lambda _of, one: {"passthrough": {}, **_location(one)},
        "aws": lambda of, one: {"aws": _aws(of, one)},
        "gcp": lambda of, one: {"gcp": _gcp(of, one)},
        "azure": _azure,
        "jwtSign": lambda of, one: {"jwtSign": _signed(of, one)},
        "oauthTokenExchange": lambda of, one: {"oauthTokenExchange": _exchange(of, one)},
        "crossAppAccess": lambda of, one: {"crossAppAccess": _cross_app(of, one)},
        "credentials": lambda of, one: {"credentials": [_further(of, each) for each in one]},
    }
    found: Json = {}
    for name, one in value.items():
        found |= readers[name](of, one)
    return found


def _location(value: SaidMap) -> Json:
    return {"location": dict(value["location"])} if "location" in value else {}


def _key(of: Conversion, value: Any) -> Json:
    located = isinstance(value, SaidMap) and value.shape == "LocatedKey"
    text = value["value"] if located else value
    return {"secretRef": of.secret_ref(text, "Authorization")} | (_location(value) if located else {})


def _further(of: Conversion, value: SaidMap) -> Json:
    reference = of.named(f"{of.about}-further").secret_ref(value["key"], "Authorization")
    return {"location": dict(value["location"]), "secretRef": reference}


def _aws(of: Conversion, value: SaidMap) -> Json:
    found: Json = {name: value[name] for name in ("region", "serviceName") if name in value}
    entries = {theirs: value[ours] for ours, theirs in _KEYS.items() if ours in value}
    if entries:
        found["secretRef"] = {"name": of.objects.secret(of.namespace, f"{of.about}-aws", entries)}
    if role := value.get("assumeRole"):
        name = role.get("sessionName")
        found["assumeRole"] = {"roleArn": role["roleArn"]}
        if isinstance(name, dict):
            found["assumeRole"]["sessionNameExpression"] = name["expression"]
        elif name is not None:
            found["assumeRole"]["sessionName"] = name
        if role.get("tags"):
            found["assumeRole"]["tags"] = [dict(one) for one in role["tags"]]
    return found


def _gcp(of: Conversion, value: SaidMap) -> Json:
    found = spelled_words({name: value[name] for name in ("type", "audience") if name in value}, "type")
    if "credential" in value:
        entries = {"credentials.json": of.text(value["credential"])}
        found["secretRef"] = {"name": of.objects.secret(of.namespace, f"{of.about}-gcp", entries)}
    return found


def _azure(of: Conversion, value: SaidMap) -> Json:
    of.losses.rest(value, "explicitConfig", "implicit")
    if "explicitConfig" not in value:
        return {"azure": {}} if "implicit" in value else {}
    said = value["explicitConfig"]
    if "clientSecret" in said:
        one = said["clientSecret"]
        names = {"tenantID": "tenant_id", "clientID": "client_id", "clientSecret": "client_secret"}
        entries = {theirs: one[ours] for theirs, ours in names.items()}
        return {"azure": {"secretRef": {"name": of.objects.secret(of.namespace, f"{of.about}-azure", entries)}}}
    if "managedIdentity" in said:
        return {"azure": {"managedIdentity": dict(said["managedIdentity"].get("userAssignedIdentity") or {})}}
    return {"azure": {"workloadIdentity": {}}}


def _signed(of: Conversion, value: SaidMap) -> Json:
    found: Json = {name: value[name] for name in ("alg", "kid", "claims", "ttl") if name in value}
    return found | _location(value) | {"signingKeyRef": of.secret_ref(value["signingKey"], "signingKey")}


def _exchange(of: Conversion, value: SaidMap) -> Json:
    same = ("audiences", "resources", "scopes", "additionalParams")
    parts = ("path", "grantType", "subjectToken", "actorToken", "requestedTokenType", "clientAuth", "cache")
    of.losses.rest(value, *FIELDS, *same, *parts, "authorizationLocation")
    found = _with_path(of, value) | {name: value[name] for name in same if name in value}
    found |= spelled_words({name: value[name] for name in ("grantType",) if name in value}, "grantType")
    if "subjectToken" in value:
        found["subjectToken"] = _token(of, value["subjectToken"])
    if "actorToken" in value:
        actor = value["actorToken"]
        found["actorToken"] = _token(of, actor)
        if actor.get("enforceMayAct"):
            found["actorToken"]["mayAct"] = "Required"
    if "requestedTokenType" in value and (kind := _token_type(of, value, "requestedTokenType")):
        found["requestedTokenType"] = kind
    if "authorizationLocation" in value:
        found["location"] = dict(value["authorizationLocation"])
    return found | _client(of, value) | _cache(value)


def _cross_app(of: Conversion, value: SaidMap) -> Json:
    same = ("audience", "resources", "scopes", "accessTokenScopes")
    ends = ("identityProvider", "resourceAuthorizationServer")
    of.losses.rest(value, *same, *ends, "subjectToken", "cache")
    found: Json = {name: value[name] for name in same if name in value}
    for name in ends:
        found[name] = _with_path(of, value[name]) | _client(of.named(f"{of.about}-{name}"), value[name])
    if "subjectToken" in value:
        found["subjectToken"] = _token(of, value["subjectToken"])
    return found | _cache(value)


def _with_path(of: Conversion, value: SaidMap) -> Json:
    """Return an endpoint with a path, which is a part of a URL."""
    found = endpoint(of, value)
    if "path" not in value:
        return found
    return {"url": found["url"].rstrip("/") + value["path"]} if "url" in found else {**found, "path": value["path"]}


def _token(of: Conversion, value: SaidMap) -> Json:
    found: Json = {"source": dict(value["source"])} if "source" in value else {}
    kind = _token_type(of, value, "tokenType") if "tokenType" in value else None
    return found | ({"tokenType": kind} if kind else {})


def _token_type(of: Conversion, value: SaidMap, name: str) -> str | None:
    kind = _TOKEN_TYPES.get(value[name])
    if kind is None:
        of.losses.add(value, name, "resources only support access tokens, JWTs and ID tokens")
    return kind


def _cache(value: SaidMap) -> Json:
    return {"cache": {"inMemory": dict(value["cache"])}} if "cache" in value else {}


def _client(of: Conversion, value: SaidMap) -> Json:
    if "clientAuth" not in value:
        return {}
    said: SaidMap = value["clientAuth"]
    found: Json = {"clientId": said["clientId"]}
    if "method" in said:
        found["method"] = said["method"][:1].upper() + said["method"][1:]
    client = of.named(f"{of.about}-client")
    if said.shape != "PrivateKeyJwt":
        return {"clientAuth": found | ({"secretRef": client.secret_ref(said["clientSecret"], "clientSecret")}
                                       if "clientSecret" in said else {})}  # fmt: skip
    key = renamed(said, {name: name for name in ("alg", "kid", "assertionAudience", "certificateHeader", "clientId",
                                                 "method", "signingKey", "certificate")}, of.losses)  # fmt: skip
    inner = {name: one for name, one in key.items() if name in ("alg", "kid", "assertionAudience", "certificateHeader")}
    inner["signingKeyRef"] = client.secret_ref(said["signingKey"], "signingKey")
    if "certificate" in said:
        of_certificate = client.named(f"{client.about}-certificate")
        inner["certificateRef"] = of_certificate.secret_ref(said["certificate"], "certificate")
    return {"clientAuth": found | {"privateKeyJwt": inner}}
