"""`services[]` and `workloads[]`: static discovery."""

from __future__ import annotations

import ipaddress
from typing import Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.shape.discovery import LABELS
from headgate.document import fields
from headgate.errors import Problem
from headgate.ir.service import Service, Workload

Ports = tuple[tuple[int, int], ...]
PORT_RANGE: Final = range(1, 65536)


class Services:
    """The services of the file by key."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.by_key: dict[str, Service] = {}
        self.workloads: dict[str, Workload] = {}

    def declare(self, services: list[Record], workloads: list[Record]) -> None:
        """Read both lists."""
        for record in services:
            service = self._service(record)
            if service.key in self.by_key:
                self._context.fault(Problem.CONFLICT, record, "hostname", f"service {service.key!r} is there twice")
            self.by_key[service.key] = service
        for record in workloads:
            workload = self._workload(record)
            if workload.uid in self.workloads:
                self._context.fault(Problem.CONFLICT, record, "uid", f"workload {workload.uid!r} is there twice")
            self.workloads[workload.uid] = workload

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
        )

    def _workload(self, record: Record) -> Workload:
        addresses = tuple(record.get("workloadIps") or ())
        for address in addresses:
            try:
                ipaddress.ip_address(address)
            except ValueError:
                self._context.fault(Problem.VALUE, record, "workloadIps", f"{address!r} is no IP address")
        served = record.get("services") or {}
        labels = ((label, record.get(label)) for label in LABELS)
        return Workload(
            uid=record["uid"],
            name=record["name"],
            namespace=record["namespace"],
            addresses=addresses,
            hostname=record.get("hostname") or "",
            services=tuple((key, self._ports(record, "services", ports)) for key, ports in served.items()),
            capacity=1 if record.get("capacity") is None else record["capacity"],
            healthy=record.get("status", "healthy") == "healthy",
            labels=tuple((label, value) for label, value in labels if value),
        )

    def _port(self, record: Record, key: str, text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) not in PORT_RANGE:
            self._context.fault(Problem.VALUE, record, key, f"{text!r} is no port")
            return 0
        return int(text)

    def _ports(self, record: Record, key: str, ports: dict[str, int]) -> Ports:
        for target in ports.values():
            if target not in PORT_RANGE:
                self._context.fault(Problem.VALUE, record, key, f"{target} is no port")
        return tuple((self._port(record, key, one), target) for one, target in ports.items())

    def endpoints(self, service: Service, port: int) -> list[tuple[Workload, str, int]]:
        """Return the workloads that serve a port of a service, each with its address and port."""
        found = []
        for workload in self.workloads.values():
            served = dict(workload.services).get(service.key)
            if served is None:
                continue
            target = dict(served).get(port) or dict(service.ports).get(port)
            host = workload.addresses[0] if workload.addresses else workload.hostname
            if target and host:
                found.append((workload, host, target))
        return found

    def for_dump(self) -> tuple[tuple[Service, ...], tuple[Workload, ...]]:
        """Return both in the order of their keys."""
        services = sorted(self.by_key.values(), key=lambda one: one.key)
        return tuple(services), tuple(sorted(self.workloads.values(), key=lambda one: one.uid))
