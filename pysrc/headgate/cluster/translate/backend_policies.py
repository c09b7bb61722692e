"""`policies` of a GatewayBackend, and of what is in it, as policies of the file's backends.

What cannot be said raises a ValueError in words for people: a backend is not called without its credentials.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.called_services import ServiceReader
from headgate.cluster.translate.edits import rules, transformation
from headgate.cluster.translate.exchanges import ExchangeReader
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.guards import GuardReader
from headgate.cluster.translate.identities import mcp_authentication
from headgate.cluster.translate.secrets import entry, pem, secret

# What a gateway has unless it is told another.
_CONNECT_TIMEOUT: Final = "10s"
_VERSIONS: Final = {"HTTP1": "HTTP/1.1", "HTTP2": "HTTP/2"}
_TLS_NAMES: Final = {
    "sni": "hostname",
    "verifySubjectAltNames": "subjectAltNames",
    "alpnProtocols": "alpn",
    "keyExchangeGroups": "keyExchangeGroups",
}


class BackendPolicyReader:
    """Reads policies of an object of one namespace, where its Secrets and ConfigMaps are. `services`: what they call.
    `callers`: see ServiceReader."""

    def __init__(self, snapshot: Snapshot, namespace: str, callers: frozenset[ObjectKey] = frozenset()) -> None:
        self._snapshot = snapshot
        self._namespace = namespace
        self.services = ServiceReader(snapshot, namespace, callers)
        self._exchanges = ExchangeReader(snapshot, namespace, self.services)
        self._guards = GuardReader(self.services, self.read)

    def read(self, section: Json) -> dict[str, Any]:
        """Return the policies of the file; ValueError names the part that cannot be said."""
        readers: dict[str, Callable[[Json], Json]] = {
            "tcp": lambda value: {"tcp": _tcp(value)},
            "tls": lambda value: {"backendTLS": self._tls(value)},
            "http": lambda value: {"http": _http(value)},
            "tunnel": lambda value: {"backendTunnel": {"proxy": self.services.place(value)}},
            "auth": lambda value: {"backendAuth": self._auth(value)},
            "ai": lambda value: {"ai": self._ai(value)},
            "mcp": self._mcp,
            "transformation": lambda value: {"transformations": transformation(value)},
            "health": lambda value: {"health": _health(value)},
            "extAuth": lambda value: {"extAuthz": self.services.authorization(value)},
        }
        found: dict[str, Any] = {}
        for name, value in section.items():
            if name not in readers:
                raise ValueError(f"{name} is not supported yet")
            try:
                found |= readers[name](value)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return found

    def _tls(self, value: Json) -> Json:
        found: Json = {ours: value[name] for name, ours in _TLS_NAMES.items() if name in value}
        if value.get("certificateSource") == "SPIFFE":
            return found | {"spiffe": {}}
        if skipped := value.get("insecureSkipVerify"):
            found["insecure" if skipped == "All" else "insecureHost"] = True
        for reference in value.get("mtlsCertificateRef") or ():
            found["cert"] = pem(self._snapshot, self._namespace, reference, "tls.crt")
            found["key"] = pem(self._snapshot, self._namespace, reference, "tls.key")
            entries = secret(self._snapshot, self._namespace, reference)
            # Both spellings are about: the specification's first.
            for name in ("ca.crt", "ca.cert"):
                if name in entries:
                    found["root"] = pem(self._snapshot, self._namespace, reference, name)
        for reference in value.get("caCertificateRefs") or ():
            kind = {"kind": reference.get("kind") or "ConfigMap"}
            found["root"] = pem(self._snapshot, self._namespace, reference | kind, "ca.crt")
        return found

    def _auth(self, value: Json) -> Json:
        location = {"location": value["location"]} if "location" in value else {}
        found: Json = {}
        for name, one in value.items():
            match name:
                case "location":
                    continue
                case "key":
                    found["key"] = {"value": one, **location}
                case "secretRef":
                    found["key"] = {"value": self._entry(one, "Authorization"), **location}
                case "passthrough":
                    found["passthrough"] = location
                case "aws":
                    found["aws"] = self._aws(one)
                case "gcp":
                    found["gcp"] = self._gcp(one)
                case "azure":
                    found["azure"] = self._azure(one)
                case "oauthTokenExchange":
                    found["oauthTokenExchange"] = self._exchanges.exchange(one)
                case "crossAppAccess":
                    found["crossAppAccess"] = self._exchanges.cross_app(one)
                case "jwtSign":
                    rest = {key: said for key, said in one.items() if key != "signingKeyRef"}
                    found["jwtSign"] = rest | {"signingKey": self._entry(one["signingKeyRef"], "signingKey")}
                case "credentials":
                    found["credentials"] = [
                        {"location": each["location"], "key": self._entry(each["secretRef"], "Authorization")}
                        for each in one
                    ]
                case _:
                    raise ValueError(f"{name} is not supported yet")
        return found

    def _entry(self, reference: Json, default: str) -> str:
        # A line that ends a Secret made from a file is no part of a credential.
        return entry(self._snapshot, self._namespace, reference, default).rstrip("\r\n")

    def _aws(self, value: Json) -> Json:
        found: Json = {name: value[name] for name in ("region", "serviceName") if name in value}
        if reference := value.get("secretRef"):
            found["accessKeyId"] = self._entry(reference | {"key": "accessKey"}, "")
            found["secretAccessKey"] = self._entry(reference | {"key": "secretKey"}, "")
            if "sessionToken" in secret(self._snapshot, self._namespace, reference):
                found["sessionToken"] = self._entry(reference | {"key": "sessionToken"}, "")
        if role := value.get("assumeRole"):
            found["assumeRole"] = {name: one for name, one in role.items() if name != "sessionNameExpression"}
            if "sessionNameExpression" in role:
                found["assumeRole"]["sessionName"] = {"expression": role["sessionNameExpression"]}
        return found

    def _azure(self, value: Json) -> Json:
        if reference := value.get("secretRef"):
            names = {"tenant_id": "tenantID", "client_id": "clientID", "client_secret": "clientSecret"}
            return {
                "explicitConfig": {
                    "clientSecret": {ours: self._entry(reference | {"key": key}, "") for ours, key in names.items()}
                }
            }
        if "managedIdentity" in value:
            identity = dict(value["managedIdentity"])
            return {"explicitConfig": {"managedIdentity": {"userAssignedIdentity": identity} if identity else {}}}
        return {"explicitConfig": {"workloadIdentity": {}}} if "workloadIdentity" in value else {"implicit": {}}

    def _gcp(self, value: Json) -> Json:
        found: Json = {name: value[name] for name in ("type", "audience") if name in value}
        if reference := value.get("secretRef"):
            found["credential"] = self._entry(reference | {"key": "credentials.json"}, "")
        return found


    def _ai(self, value: Json) -> Json:
        found: Json = {}
        for name, one in value.items():
            match name:
                case "defaults" | "overrides":
                    found[name] = {each["field"]: each["value"] for each in one}
                case "transformations" | "finalTransformations":
                    found[name] = {each["field"]: each["expression"] for each in one}
                case "modelAliases" | "routes" | "promptCaching" | "unsupportedParameters":
                    found[name] = one
                case "prompt" | "promptEnrichment":
                    found["prompts"] = one
                case "promptGuard":
                    found[name] = self._guards.prompts(one)
                case _:
                    raise ValueError(f"{name} is not supported yet")
        return found

    def _mcp(self, value: Json) -> Json:
        found: Json = {}
        if "authorization" in value:
            found["mcpAuthorization"] = {"rules": rules(value["authorization"])}
        if "guardrails" in value:
            found["mcpGuardrails"] = self._guards.servers(value["guardrails"])
        if "authentication" in value:
            asked = value["authentication"]
            found["mcpAuthentication"] = mcp_authentication(self._snapshot, self._namespace, asked, self.services)
        return found


def _http(value: Json) -> Json:
    found = {name: one for name, one in value.items() if name == "requestTimeout"}
    return found | ({"version": _VERSIONS[value["version"]]} if "version" in value else {})


def _tcp(value: Json) -> Json:
    # Whether to send any is said by whether the block is there.
    keepalive = value.get("keepalive")
    return {
        "keepalives": {"enabled": keepalive is not None, **(keepalive or {})},
        "connectTimeout": value.get("connectTimeout", _CONNECT_TIMEOUT),
    }


def _health(value: Json) -> Json:
    found: Json = {}
    if "unhealthyCondition" in value:
        found["unhealthyExpression"] = value["unhealthyCondition"]
    if "eviction" in value:
        # In percent there, 0..1 here.
        shares = ("healthThreshold", "restoreHealth")
        found["eviction"] = {
            name: float(Fraction(one, 100)) if name in shares else one for name, one in value["eviction"].items()
        }
    return found
