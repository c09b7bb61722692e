"""Services and the workloads behind them."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """`ports`: pairs of the service's port and the workloads' (where they do not say otherwise)."""

    name: str
    namespace: str
    hostname: str
    vips: tuple[str, ...] = ()
    ports: tuple[tuple[int, int], ...] = ()
    app_protocols: tuple[tuple[int, str], ...] = ()

    @property
    def key(self) -> str:
        """`<namespace>/<hostname>`: how routes name it."""
        return f"{self.namespace}/{self.hostname}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """`services`: for each service key the ports it serves there, as pairs. `labels`: the rest, for the dump only."""

    uid: str
    name: str
    namespace: str
    addresses: tuple[str, ...] = ()
    hostname: str = ""
    services: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()
    capacity: int = 1
    healthy: bool = True
    labels: tuple[tuple[str, str], ...] = ()
