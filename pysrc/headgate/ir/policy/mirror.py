"""Copies of requests for another place."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.key_auth import KeyAuth


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTarget:
    """A host, a port of a service, or a named backend: places with their shares. `credential`: of a named backend."""

    kind: Literal["host", "service", "backend"]
    name: str
    port: int = 0
    places: tuple[tuple[Endpoint, int], ...] = ()
    credential: KeyAuth | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """`fraction` 0..1 of the requests, without their bodies; what comes back is thrown away."""

    target: CopyTarget
    fraction: float = 1.0
