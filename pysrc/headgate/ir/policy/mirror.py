"""Mirroring: copies of requests for another backend."""

from __future__ import annotations

from typing import Literal

from headgate.document.lazy_dataclass import dataclass
from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.key_auth import KeyAuth


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTarget:
    """The backend that receives copies: a host, a port of a service, or a named backend.

    `places` are (endpoint, weight) pairs. `credential` is that of a named backend.
    """

    kind: Literal["host", "service", "backend"]
    name: str
    port: int = 0
    places: tuple[tuple[Endpoint, int], ...] = ()
    credential: KeyAuth | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """Sends copies of a `fraction` (0..1) of the requests without their bodies. The responses are discarded."""

    target: CopyTarget
    fraction: float = 1.0
