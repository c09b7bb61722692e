"""Names, labels and owners of the objects that run a Gateway."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from headgate.cluster.snapshot import GATEWAY_API, key_of

Json = dict[str, Any]
# A Service's name is a label of DNS (RFC 1123).
MOST: Final = 63
_KEPT: Final = 50
_DIGITS: Final = 12
NAME: Final = "app.kubernetes.io/name"
INSTANCE: Final = "app.kubernetes.io/instance"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
VERSION: Final = "app.kubernetes.io/version"
GATEWAY_NAME: Final = f"{GATEWAY_API}/gateway-name"
CLASS_NAME: Final = f"{GATEWAY_API}/gateway-class-name"
MANAGER: Final = "headgate"


def short_name(name: str) -> str:
    """Return a name of at most 63 characters: a longer one is cut and ends with 12 digits of its SHA-256."""
    if len(name) <= MOST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[:_KEPT].rstrip('-')}-{digest}"


def selector(gateway: Json) -> dict[str, str]:
    """Return the labels that pods of a Gateway are found by; they never change."""
    name = short_name(gateway["metadata"]["name"])
    return {NAME: name, INSTANCE: name, GATEWAY_NAME: name}


def labels(gateway: Json, version: str) -> dict[str, str]:
    """Return the labels of all objects of a Gateway; those of its `infrastructure` cannot take the place of ours."""
    wanted = (gateway["spec"].get("infrastructure") or {}).get("labels") or {}
    added = {key: value for key, value in wanted.items() if not key.startswith(f"{GATEWAY_API}/")}
    return {
        **added,
        **selector(gateway),
        CLASS_NAME: short_name(gateway["spec"]["gatewayClassName"]),
        MANAGED_BY: MANAGER,
        VERSION: short_name(version.replace("+", "-")),
    }


def extra_annotations(gateway: Json) -> dict[str, str]:
    """Return the annotations that a Gateway wants on everything that is made for it."""
    return dict((gateway["spec"].get("infrastructure") or {}).get("annotations") or {})


def owner(gateway: Json) -> Json:
    """Return the owner reference of a Gateway's objects: with the Gateway they go."""
    return {
        "apiVersion": gateway["apiVersion"],
        "kind": gateway["kind"],
        "name": gateway["metadata"]["name"],
        "uid": gateway["metadata"].get("uid", ""),
        "controller": True,
    }


def metadata(gateway: Json, version: str, suffix: str = "") -> Json:
    """Return the metadata of an object of a Gateway. `suffix`: what its name has behind that of the Gateway."""
    found: Json = {
        "name": short_name(gateway["metadata"]["name"]) + suffix,
        "namespace": key_of(gateway).namespace,
        "labels": labels(gateway, version),
        "ownerReferences": [owner(gateway)],
    }
    if added := extra_annotations(gateway):
        found["annotations"] = added
    return found


def is_ours(document: Json, gateway: Json) -> bool:
    """Tell whether an object belongs to a Gateway: its controller is the Gateway, or it has none and our labels."""
    about = document["metadata"]
    controller = next((one for one in about.get("ownerReferences") or () if one.get("controller")), None)
    if controller is not None:
        return bool(controller["uid"] == gateway["metadata"].get("uid"))
    found = about.get("labels") or {}
    return found.get(MANAGED_BY) == MANAGER and found.get(GATEWAY_NAME) == short_name(key_of(gateway).name)
