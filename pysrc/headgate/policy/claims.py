"""What the plan of a route holds of its worker. A new configuration that takes the plan over names it again."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.document_source import DocumentSource

# Owner, key, place and capacity of an endpoint whose state all workers share.
Place = tuple[str, str, Endpoint, int]


@dataclass(slots=True)
class Claims:
    """`pools` by the key of their endpoint; `variables` are those that the expressions read."""

    pools: dict[str, Endpoint] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    sources: list[DocumentSource] = field(default_factory=list)
    variables: frozenset[str] = frozenset()
