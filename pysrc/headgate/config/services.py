"""`services[]` and `workloads[]`: static discovery."""

from __future__ import annotations

import ipaddress
from typing import Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.shape.discovery import LABELS
from headgate.document import fields
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.service import Balancing, Service, Workload

Ports = tuple[tuple[int, int], ...]
# A service with its workloads, in their order.
Declared = tuple[Service, tuple[Workload, ...]]
PORT_RANGE: Final = range(1, 65536)
# Whether a service whose port says this (`appProtocol` of Kubernetes, in any case) is spoken to in HTTP/2.
APP_PROTOCOLS: Final = {
    "http": False, "http11": False, "http/1.1": False, "https": False,
    "kubernetes.io/ws": False, "kubernetes.io/wss": False,
    "http2": True, "http/2": True, "h2c": True, "kubernetes.io/h2c": True, "grpc": True,
}  # fmt: skip
# What the port of a service says behind which there are agents that speak A2A, in any case.
A2A_PROTOCOLS: Final = frozenset(("headgate.dev/a2a", "kgateway.dev/a2a"))
# Where the gateway learns where it is.
ENVIRONMENT: Final = {
    "region": "LOCALITY", "zone": "LOCALITY", "subzone": "LOCALITY", "node": "NODE_NAME", "cluster": "CLUSTER_ID",
    "network": "NETWORK",
}  # fmt: skip


class Services:
    """The services of the file by key."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.by_key: dict[str, Service] = {}
        self.workloads: dict[str, Workload] = {}
        # The workloads of each service by its key, in the order of all.
        self._serving: dict[str, list[Workload]] = {}

    def declare(self, services: list[Record], workloads: list[Record]) -> None:
        """Read both lists."""
        for record in services:
            service = self._service(record)
            if service.key in self.by_key:
                self._context.fault(Problem.CONFLICT, record, "hostname", f"service {service.key!r} is defined twice")
            self.by_key[service.key] = service
        for record in workloads:
            workload = self._workload(record)
            if workload.uid in self.workloads:
                self._context.fault(Problem.CONFLICT, record, "uid", f"workload {workload.uid!r} is defined twice")
            self.workloads[workload.uid] = workload
        for record in services:
            self._endpoints(record)
        for workload in self.workloads.values():
            for key in dict(workload.services):
                self._serving.setdefault(key, []).append(workload)

    def _endpoints(self, record: Record) -> None:
        """Add the workloads that a service names itself."""
        key = f"{record['namespace']}/{record['hostname']}"
        service = self.by_key.get(key)
        for uid, entry in (record.get("endpoints") or {}).items():
            workload = self.workloads.get(entry["workloadUid"])
            if workload is None:
                message = f"endpoint {uid!r}: no workload has the uid {entry['workloadUid']!r}"
                self._context.fault(Problem.REFERENCE, record, "endpoints", message)
                continue
            ports = self._ports(entry, "port", entry.get("port") or {})
            usable = entry.get("status", "healthy") == "healthy" or _takes_all(service)
            others = tuple(one for one in workload.services if one[0] != key)
            added = ((key, ports),) if usable else ()
            self.workloads[workload.uid] = replace(workload, services=(*others, *added))

    def _service(self, record: Record) -> Service:
        try:
            hostname = fields.server_name(record["hostname"])
        except ValueError as error:
            self._context.fault(Problem.VALUE, record, "hostname", str(error))
            hostname = record["hostname"]
        protocols = record.get("appProtocols") or {}
        return Service(
            name=record["name"],
            namespace=record["namespace"],
            hostname=hostname,
            vips=tuple(record.get("vips") or ()),
            ports=self._ports(record, "ports", record.get("ports") or {}),
            app_protocols=tuple((self._port(record, "appProtocols", key), value) for key, value in protocols.items()),
            alt_names=tuple(record.get("subjectAltNames") or ()),
            balancing=self._balancing(record),
        )

    def _balancing(self, record: Record) -> Balancing | None:
        written = record.get("loadBalancer")
        if written is None:
            return None
        found = Balancing(
            mode=written.get("mode") or "standard",
            scopes=tuple(dict.fromkeys(written.get("routingPreferences") or ())),
            all_healthy=written.get("healthPolicy") == "allowAll",
        )
        unknown = [scope for scope in found.scopes if not self._own_place()[scope]]
        if found.mode != "standard" and not found.scopes:
            self._context.fault(Problem.MISSING, written, "routingPreferences", f"mode {found.mode} needs some")
        elif found.mode != "standard" and unknown:
            told = f"the gateway does not know its own {', '.join(unknown)}: no workload matches there"
            names = ", ".join(dict.fromkeys(ENVIRONMENT[scope] for scope in unknown))
            self._context.warnings.append(f"{written.path}: {told} (set {names})")
        return found

    def _own_place(self) -> dict[str, str]:
        """Return where the gateway is, by scope; empty where that is not known."""
        environ = self._context.environ
        return _place(*(environ.get(name, "") for name in ("LOCALITY", "NODE_NAME", "CLUSTER_ID", "NETWORK")))

    def _workload(self, record: Record) -> Workload:
        addresses = tuple(record.get("workloadIps") or ())
        for address in addresses:
            try:
                ipaddress.ip_address(address)
            except ValueError:
                self._context.fault(Problem.VALUE, record, "workloadIps", f"{address!r} is no IP address")
        served = record.get("services") or {}
        labels = ((label, record.get(label)) for label in LABELS)
        workload = Workload(
            uid=record["uid"],
            name=record["name"],
            namespace=record["namespace"],
            addresses=addresses,
            hostname=record.get("hostname") or "",
            services=tuple((key, self._ports(record, "services", ports)) for key, ports in served.items()),
            capacity=1 if record.get("capacity") is None else record["capacity"],
            healthy=record.get("status", "healthy") == "healthy",
            locality=_locality(record.get("locality")),
            labels=tuple((label, value) for label, value in labels if value),
            hbone=record.get("protocol") == "HBONE",
        )
        if workload.hbone:
            from headgate.config.mesh import check_workload  # few need it

            check_workload(self._context, record, workload)
        return workload

    def _port(self, record: Record, key: str, text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) not in PORT_RANGE:
            self._context.fault(Problem.VALUE, record, key, f"{text!r} is not a port")
            return 0
        return int(text)

    def _ports(self, record: Record, key: str, ports: dict[str, int]) -> Ports:
        for target in ports.values():
            if target not in PORT_RANGE:
                self._context.fault(Problem.VALUE, record, key, f"{target} is not a port")
        return tuple((self._port(record, key, one), target) for one, target in ports.items())

    def named(self, key: str) -> Service | None:
        """Return the service `<namespace>/<hostname>`; None if there is none. What is being read depends on it, one way
        or the other."""
        self._context.notes.services.add(key)
        return self.by_key.get(key)

    def endpoints(self, service: Service, port: int) -> list[tuple[Workload, str, int]]:
        """Return the workloads of a service that requests for a port of it go to, each with its address and port."""
        found = []
        for workload in self._serving.get(service.key, ()):
            if not (workload.healthy or _takes_all(service)):
                continue
            target = dict(dict(workload.services)[service.key]).get(port) or dict(service.ports).get(port)
            host = workload.addresses[0] if workload.addresses else workload.hostname
            if target and host:
                found.append((workload, host, target))
        return self._nearest(service, found)

    def declared(self) -> dict[str, Declared]:
        """Return by its key what a service is, and its workloads with nothing of what else they serve."""
        return {
            key: (
                service,
                tuple(
                    replace(one, services=tuple(served for served in one.services if served[0] == key))
                    for one in self._serving.get(key, ())
                ),
            )
            for key, service in self.by_key.items()
        }

    def places(self, hostname: str, port: int) -> tuple[tuple[str, int], ...] | None:
        """Return host and port of the workloads behind a port of the service of a host name; None if there is no such
        service, or no such port. Workloads of a mesh are left out: they are reached in another way. What is being read
        depends on that, one way or the other."""
        self._context.notes.services.add(hostname)
        for service in self.by_key.values():
            if service.hostname == hostname and port in dict(service.ports):
                found = self.endpoints(service, port)
                return tuple((host, target) for workload, host, target in found if not workload.hbone)
        return None

    def _nearest(self, service: Service, found: list[tuple[Workload, str, int]]) -> list[tuple[Workload, str, int]]:
        """Return those that the mode of the service wants."""
        balancing = service.balancing
        if balancing is None or balancing.mode == "standard" or not found:
            return found
        own = self._own_place()
        ranks = [_rank(balancing.scopes, own, _place_of(workload)) for workload, _, _ in found]
        wanted = len(balancing.scopes) if balancing.mode == "strict" else max(ranks)
        return [one for one, rank in zip(found, ranks, strict=True) if rank >= wanted]

    def for_dump(self) -> tuple[tuple[Service, ...], tuple[Workload, ...]]:
        """Return both in the order of their keys."""
        services = sorted(self.by_key.values(), key=lambda one: one.key)
        return tuple(services), tuple(sorted(self.workloads.values(), key=lambda one: one.uid))


def _takes_all(service: Service | None) -> bool:
    return service is not None and service.balancing is not None and service.balancing.all_healthy


def _locality(written: str | Record | None) -> str:
    if written is None or isinstance(written, str):
        return written or ""
    parts = [written.get(part) or "" for part in ("region", "zone", "subzone")]
    return "/".join(parts).rstrip("/")


def _place(locality: str, node: str, cluster: str, network: str) -> dict[str, str]:
    """Return a place by scope. A zone is one of its region, a subzone one of its zone."""
    region, zone, subzone = (*locality.split("/", 2), "", "")[:3]
    return {
        "region": region,
        "zone": f"{region}/{zone}" if zone else "",
        "subzone": locality if subzone else "",
        "node": node,
        "cluster": cluster,
        "network": network,
    }


def _place_of(workload: Workload) -> dict[str, str]:
    labels = dict(workload.labels)
    return _place(
        workload.locality, labels.get("node", ""), labels.get("clusterId", ""), labels.get("network", "")
    )


def _rank(scopes: tuple[str, ...], own: dict[str, str], other: dict[str, str]) -> int:
    """Return in how many scopes, from the first on, two places are the same."""
    found = 0
    for scope in scopes:
        if not own[scope] or own[scope] != other[scope]:
            break
        found += 1
    return found
