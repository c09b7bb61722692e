"""Services and their workloads."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service. `ports` are pairs of a service port and the default port of its workloads."""

    name: str
    namespace: str
    hostname: str
    vips: tuple[str, ...] = ()
    ports: tuple[tuple[int, int], ...] = ()
    app_protocols: tuple[tuple[int, str], ...] = ()

    @property
    def key(self) -> str:
        """The name by which routes refer to the service: `<namespace>/<hostname>`."""
        return f"{self.namespace}/{self.hostname}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload that serves ports of services.

    `services` has for each service key pairs of a service port and the workload's port. `labels` are all other fields,
    which only the configuration dump shows.
    """

    uid: str
    name: str
    namespace: str
    addresses: tuple[str, ...] = ()
    hostname: str = ""
    services: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()
    capacity: int = 1
    healthy: bool = True
    labels: tuple[tuple[str, str], ...] = ()
