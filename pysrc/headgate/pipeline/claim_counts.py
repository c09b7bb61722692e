"""Counts how many route plans use a resource of their worker. Resources without users are not carried into the next
configuration. A reload counts only changed routes, and visits resources instead of routes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.document_source import DocumentSource
from headgate.policy.claims import Place, RouteClaims


class ClaimCounts:
    """`pools`: counts by the key of their endpoint, which is in `endpoints`. `variables`: the ones that expressions
    read."""

    def __init__(self, before: ClaimCounts | None = None) -> None:
        self.endpoints: dict[str, Endpoint] = {} if before is None else before.endpoints.copy()
        self.pools: Counter[str] = Counter() if before is None else before.pools.copy()
        self.places: Counter[Place] = Counter() if before is None else before.places.copy()
        self.sources: Counter[DocumentSource] = Counter() if before is None else before.sources.copy()
        self.variables: Counter[str] = Counter() if before is None else before.variables.copy()

    def add(self, claims: RouteClaims) -> None:
        """Count the resources of one plan."""
        # An update of a counter costs a microsecond when there is nothing to count.
        if claims.pools:
            self.endpoints.update(claims.pools)
            self.pools.update(claims.pools.keys())
        if claims.places:
            self.places.update(claims.places)
        if claims.sources:
            self.sources.update(claims.sources)
        for name in claims.variables:
            self.variables[name] += 1

    def remove(self, claims: RouteClaims) -> None:
        """Uncount the resources of one plan."""
        _subtract(self.pools, claims.pools)
        _subtract(self.places, claims.places)
        _subtract(self.sources, claims.sources)
        _subtract(self.variables, claims.variables)
        for key in claims.pools:
            if key not in self.pools:
                self.endpoints.pop(key, None)


def _subtract(counts: Counter[Any], held: Iterable[Any]) -> None:
    for one in held:
        counts[one] -= 1
        if counts[one] <= 0:
            del counts[one]
