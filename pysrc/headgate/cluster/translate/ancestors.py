"""Lists of statuses that name other objects: their order, and how many there may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headgate.cluster.snapshot import GATEWAY_API

# What the API takes. https://gateway-api.sigs.k8s.io/reference/spec/#policystatus
MOST_ANCESTORS: Final = 16


def by_reference(reference: Mapping[str, Any]) -> tuple[str, str, str, str, int, str]:
    """Return what entries are sorted by: `group/kind/name/section/port.namespace` of the object that they name."""
    return (
        reference.get("group", GATEWAY_API), reference.get("kind", "Gateway"), reference["name"],
        reference.get("sectionName") or "", reference.get("port") or 0, reference.get("namespace") or "",
    )  # fmt: skip
