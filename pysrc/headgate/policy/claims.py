"""Worker resources that the plan of a route refers to. A configuration that reuses the plan claims them again."""

from __future__ import annotations

from dataclasses import field

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.document_source import DocumentSource

# Owner, key, endpoint state in shared memory, and capacity.
Place = tuple[str, str, Endpoint, int]


@dataclass(slots=True)
class RouteClaims:
    """The resources of one route: `pools` by the key of their endpoint; `variables` are those that expressions read."""

    pools: dict[str, Endpoint] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    sources: list[DocumentSource] = field(default_factory=list)
    variables: frozenset[str] = frozenset()
