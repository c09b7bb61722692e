"""Overlays of GatewayParameters over generated objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headgate.cluster.deploy.naming import GATEWAY_NAME, MANAGED_BY
from headgate.cluster.deploy.outcome import DeployRefused
from headgate.cluster.deploy.strategic import patched

Json = dict[str, Any]
# A ServiceAccount has no `spec`: that of its overlay stands for these fields of the object itself.
_OF_ACCOUNT: Final = ("automountServiceAccountToken", "imagePullSecrets", "secrets")
_MAPS: Final = ("labels", "annotations")
# What objects of a Gateway are known by.
_OURS: Final = (GATEWAY_NAME, MANAGED_BY)


def laid_over(document: Json, overlays: Sequence[Json]) -> Json:
    """Return an object with overlays laid over it, one after the other. Raises DeployRefused.

    Labels and annotations are added key by key; those that tell whose the object is stay.
    """
    for one in overlays:
        document = _one(document, one)
    return document


def _one(document: Json, overlay: Json) -> Json:
    about = dict(document["metadata"])
    given = overlay.get("metadata") or {}
    for name in _MAPS:
        if added := {key: value for key, value in (given.get(name) or {}).items() if key not in _OURS}:
            about[name] = {**about.get(name, {}), **added}
    document = {**document, "metadata": about}
    spec = overlay.get("spec")
    if not spec:
        return document
    if document["kind"] != "ServiceAccount":
        return patched(document, {"spec": spec})
    for name in spec:
        if not name.startswith("$") and name not in _OF_ACCOUNT:
            raise DeployRefused(f"serviceAccount.spec.{name}: one of {', '.join(_OF_ACCOUNT)} is expected")
    return patched(document, spec)

