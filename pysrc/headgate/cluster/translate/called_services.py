"""Services that policies call: external authorization and processing, and global rate limits.

A reference of a policy needs no ReferenceGrant: only those of routes do.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from headgate.cluster.snapshot import GATEWAY_BACKEND, INFERENCE_POOL, GroupKind, ObjectKey, Snapshot
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import Json
from headgate.document.fields import bytes_of

_ENDPOINT: Final = ("backendRef", "url")
_GRPC: Final = {"contextExtensions": "context", "requestMetadata": "metadata"}
_HTTP: Final = {
    "path": "path",
    "redirect": "redirect",
    "body": "body",
    "addRequestHeaders": "addRequestHeaders",
    "allowedResponseHeaders": "includeResponseHeaders",
    "responseMetadata": "metadata",
}


class ServiceReader:
    """Reads policies of one namespace. `used` and `backends`: Services and GatewayBackends that are called.
    `callers`: GatewayBackends whose own policies these are, or those of what calls them."""

    def __init__(self, snapshot: Snapshot, namespace: str, callers: frozenset[ObjectKey] = frozenset()) -> None:
        self._snapshot = snapshot
        self._namespace = namespace
        self._callers = callers
        self.used: set[ObjectKey] = set()
        self.backends: set[ObjectKey] = set()

    def authorization(self, value: Json) -> Json:
        """Return `extAuthz` of one entry."""
        found = self.place(value) | {"failureMode": "allow" if value.get("failureMode") == "FailOpen" else "deny"}
        if "grpc" in value:
            said = value["grpc"]
            found["protocol"] = {"grpc": {ours: said[name] for name, ours in _GRPC.items() if name in said}}
        else:
            said = value["http"]
            found["protocol"] = {"http": {ours: said[name] for name, ours in _HTTP.items() if name in said}}
            if "allowedRequestHeaders" in said:
                found["includeRequestHeaders"] = list(said["allowedRequestHeaders"])
        if "forwardBody" in value:
            # A larger body is refused, not cut.
            most = bytes_of(value["forwardBody"]["maxSize"])
            found["includeRequestBody"] = {"maxRequestBytes": most, "allowPartialMessage": False}
        if "cache" in value:
            found["cache"] = value["cache"]
        return found

    def processing(self, value: Json) -> Json:
        """Return `extProc` of one entry, which has the names of the file."""
        return self.place(value) | {name: one for name, one in value.items() if name not in _ENDPOINT}

    def limit(self, value: Json) -> Json:
        """Return `remoteRateLimit` of one entry."""
        found = self.place(value) | {"domain": value["domain"]}
        found["descriptors"] = [
            {"entries": [{"key": each["name"], "value": each["expression"]} for each in one["entries"]]}
            | ({"type": one["unit"]} if "unit" in one else {})
            | {name: one[name] for name in ("cost", "limitOverride") if name in one}
            for one in value["descriptors"]
        ]
        return found | ({"failureMode": value["failureMode"]} if "failureMode" in value else {})

    def place(self, value: Json) -> Json:
        """Return the service of an endpoint, which is a `backendRef` or a `url`. Raises ValueError."""
        if "url" in value:
            # Of a URL without a path, `/` is the same.
            if urlsplit(value["url"]).path not in ("", "/"):
                raise ValueError("a path in url is not supported yet")
            return {"host": value["url"].rstrip("/")}
        reference = value["backendRef"]
        kind = GroupKind(reference.get("group", ""), reference.get("kind", "Service"))
        key = ObjectKey(reference.get("namespace") or self._namespace, reference["name"])
        if kind == INFERENCE_POOL:
            raise ValueError(f"InferencePool {key.name}: a policy cannot call one")
        if kind == GATEWAY_BACKEND and key in self._callers:
            raise ValueError(f"GatewayBackend {key} is called by its own policies")
        from headgate.cluster.translate.backends import destination  # it reads backends, whose policies call services

        reached = destination(self._snapshot, kind, key, reference.get("port"), self._callers)
        if isinstance(reached, Unmet):
            raise ValueError(reached.message)
        if kind == GATEWAY_BACKEND:
            found = self._snapshot.find(kind, *key)
            if found is None or not {"static", "a2a"} & found["spec"].keys():
                raise ValueError(f"GatewayBackend {key} is not static")
            self.backends.add(key)
        else:
            self.used.add(key)
        return dict(reached.form)
