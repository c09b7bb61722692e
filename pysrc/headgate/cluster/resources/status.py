"""Statuses of our resources: conditions, and what they are about."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.formats import (
    API_GROUP,
    GATEWAY_GROUP,
    KIND,
    NAMESPACE,
    OBJECT_NAME,
    PORT,
    SECTION,
)
from headgate.cluster.resources.schema import Json, default, integer, listed, nothing, record, text, words

_NAMES: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
CONDITION: Final = record(
    {
        "type": text(1, 316, _NAMES),
        "status": words("True", "False", "Unknown"),
        "observedGeneration": integer(0, 2**63 - 1),
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "reason": text(1, 1_024, r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
        "message": text(0, 32_768),
    },
    required=("lastTransitionTime", "message", "reason", "status", "type"),
)


def conditions(least: int) -> Json:
    """Return a list of at least `least` conditions, one of each type."""
    return listed(CONDITION, least, 8, key="type")


_REFERENCE: Final = record(
    {
        "group": default(API_GROUP, GATEWAY_GROUP),
        "kind": default(KIND, "Gateway"),
        "namespace": NAMESPACE,
        "name": OBJECT_NAME,
        "sectionName": SECTION,
        "port": PORT,
    },
    required=("name",),
)
_CONTROLLER: Final = text(
    1, 253, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9\/\-._~%!$&'()*+,;=:]+$"
)


def _each(name: str) -> Json:
    """Return the list of one kind of reference with its conditions."""
    item = record(
        {name: _REFERENCE, "controllerName": _CONTROLLER, "conditions": conditions(1)},
        required=(name, "controllerName", "conditions"),
    )
    return listed(item, 0, 16)


BACKEND: Final = record({"conditions": conditions(0)})
POLICY: Final = record({"ancestors": _each("ancestorRef")}, required=("ancestors",))
MODEL: Final = record({"parents": _each("parentRef")}, required=("parents",))
PARAMETERS: Final = nothing()
