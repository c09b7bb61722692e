"""Copies of requests for another place."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.ir.endpoint import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """`fraction` 0..1 of the requests, without their bodies; what comes back is thrown away."""

    endpoint: Endpoint
    fraction: float = 1.0
