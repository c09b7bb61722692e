"""Services and their workloads."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass

# Of workloads that name none.
TRUST_DOMAIN = "cluster.local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancing:
    """Which workloads of a service are used. `scopes`: where they should be as the gateway is (region, zone, subzone,
    node, cluster, network), the most important first. `mode`: `standard` disregards that, `strict` uses only those that
    match in all, `failover` those that match in the most. `all_healthy`: their status is disregarded.
    """

    mode: str = "standard"
    scopes: tuple[str, ...] = ()
    all_healthy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service. `ports` are pairs of a service port and the default port of its workloads.

    `alt_names`: names of which a certificate of its workloads must have one. `balancing`: which workloads are used.
    """

    name: str
    namespace: str
    hostname: str
    vips: tuple[str, ...] = ()
    ports: tuple[tuple[int, int], ...] = ()
    app_protocols: tuple[tuple[int, str], ...] = ()
    alt_names: tuple[str, ...] = ()
    balancing: Balancing | None = None

    @property
    def key(self) -> str:
        """The name by which routes refer to the service: `<namespace>/<hostname>`."""
        return f"{self.namespace}/{self.hostname}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload that serves ports of services.

    `services` has for each service key pairs of a service port and the workload's port. `locality` is
    `region/zone/subzone`. `labels` are all other fields,
    which only the configuration dump shows. `hbone`: it is reached through tunnels of the mesh.
    """

    uid: str
    name: str
    namespace: str
    addresses: tuple[str, ...] = ()
    hostname: str = ""
    services: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()
    capacity: int = 1
    healthy: bool = True
    locality: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    hbone: bool = False

    @property
    def trust_domain(self) -> str:
        """The trust domain of its certificate in the mesh."""
        return dict(self.labels).get("trustDomain", TRUST_DOMAIN)

    @property
    def identity(self) -> str:
        """The SPIFFE ID of that certificate: `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`."""
        account = dict(self.labels).get("serviceAccount", "")
        return f"spiffe://{self.trust_domain}/ns/{self.namespace}/sa/{account}"
