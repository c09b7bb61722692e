"""The objects that a conversion makes, with names that an API server takes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from headgate.cluster.snapshot import GATEWAY_API, GroupKind, ObjectKey
from headgate.cluster.translate.fragments import Json

_GROUPS: Final = {
    "GatewayBackend": "headgate.dev/v1alpha1", "GatewayPolicy": "headgate.dev/v1alpha1",
    "GatewayModel": "headgate.dev/v1alpha1", "GatewayParameters": "headgate.dev/v1alpha1",
    "Secret": "v1", "ConfigMap": "v1", "ReferenceGrant": "gateway.networking.k8s.io/v1beta1",
    "TCPRoute": "gateway.networking.k8s.io/v1alpha2", "Service": "v1", "EndpointSlice": "discovery.k8s.io/v1",
}  # fmt: skip
_GATEWAY: Final = "gateway.networking.k8s.io/v1"
# In this order they are written: what others name comes before them.
_ORDER: Final = (
    "Secret", "ConfigMap", "Service", "EndpointSlice", "GatewayParameters", "Gateway", "GatewayBackend", "HTTPRoute",
    "GRPCRoute", "TLSRoute", "TCPRoute", "GatewayModel", "GatewayPolicy", "ReferenceGrant",
)  # fmt: skip
_UNFIT: Final = re.compile(r"[^a-z0-9.-]+|(?<![a-z0-9])[.-]+|[.-]+(?![a-z0-9])")
# Room for a number behind a name of at most 253 characters; labels of host names have 63.
_MOST_NAME: Final = 56


def slug(text: str) -> str:
    """Return a text as the name of an object: lower case letters, digits, `-`. Two texts may become one."""
    found = _UNFIT.sub("-", text.lower()).replace(".", "-").strip("-")
    return re.sub("-+", "-", found)[:_MOST_NAME].strip("-") or "x"


class Objects:
    """Objects by kind and name. What is equal is made once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ObjectKey], Json] = {}
        self._same: dict[tuple[str, str, str], str] = {}
        # Path and line of what objects are made of now, and of what each was made of.
        self.origin = ("", 0)
        self._origins: dict[str, tuple[str, int]] = {}

    def name(self, kind: str, namespace: str, wanted: str) -> str:
        """Return a name that no object of the kind has."""
        plain = slug(wanted)
        found, number = plain, 1
        while (kind, ObjectKey(namespace, found)) in self._found:
            number += 1
            found = f"{plain}-{number}"
        return found

    def add(self, kind: str, namespace: str, wanted: str, content: Mapping[str, Any]) -> Json:
        """Add an object under the wanted name, or one like it; returns it. `content`: `spec`, `data` or `type`."""
        metadata = {"name": self.name(kind, namespace, wanted), "namespace": namespace}
        made: Json = {"apiVersion": _GROUPS.get(kind, _GATEWAY), "kind": kind, "metadata": metadata, **content}
        key = ObjectKey(namespace, metadata["name"])
        self._found[kind, key] = made
        self._origins[f"{kind} {key}"] = self.origin
        return made

    def shared(self, kind: str, namespace: str, wanted: str, content: Mapping[str, Any]) -> str:
        """Return the name of an object with a content, which is made if there is none of its kind with it."""
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        name = self._same.get((kind, namespace, digest))
        if name is None:
            name = self.add(kind, namespace, wanted, content)["metadata"]["name"]
            self._same[kind, namespace, digest] = name
        return name

    def secret(self, namespace: str, wanted: str, entries: Mapping[str, str], form: str = "Opaque") -> str:
        """Return the name of a Secret with entries."""
        data = {name: base64.b64encode(text.encode()).decode() for name, text in entries.items()}
        return self.shared("Secret", namespace, wanted, {"type": form, "data": data})

    def authority(self, namespace: str, wanted: str, certificates: str) -> str:
        """Return the name of a ConfigMap with certificates of authorities."""
        return self.shared("ConfigMap", namespace, wanted, {"data": {"ca.crt": certificates}})

    def grant(self, of: str, namespace: str, to: GroupKind, other: str) -> None:
        """Let routes of a kind in one namespace refer to objects of another one."""
        if namespace != other:
            source = {"group": GATEWAY_API, "kind": of, "namespace": namespace}
            spec = {"from": [source], "to": [{"group": to.group, "kind": to.kind}]}
            self.shared("ReferenceGrant", other, f"{of}-of-{namespace}-to-{to.kind}", {"spec": spec})

    def origin_of(self, kind: str, key: str) -> tuple[str, int]:
        """Return path and line of what an object was made of."""
        return self._origins.get(f"{kind} {key}", ("", 0))

    def in_order(self) -> list[Json]:
        """Return the objects, kind by kind, of plain JSON types."""
        found: list[Json] = json.loads(json.dumps(list(self._found.values())))
        return sorted(found, key=lambda one: _ORDER.index(one["kind"]))
