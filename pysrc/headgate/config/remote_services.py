"""Services that policies call: by address, by the name of a backend, or of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.config import policy
from headgate.config.check import Record
from headgate.config.policy_values import backend_options
from headgate.document.fields import ConnectTarget
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.backend import ServiceBackend
from headgate.ir.remote_service import RemoteService

if TYPE_CHECKING:
    from headgate.config.backends import Backends


def parse(backends: Backends, record: Record, *, grpc: bool = True) -> RemoteService | None:
    """Return the service that a record names. Returns None after reporting an error."""
    named, service = record.get("backend"), record.get("service")
    host: ConnectTarget | None = record.get("host") or record.get("url")
    options = backends.service_options(record)
    if named is not None:
        plain = named.removeprefix("/")
        entry = backends.named(plain)
        if entry is None or entry.record.get("host") is None:
            backends.context.fault(Problem.REFERENCE, record, "backend", f"no host backend is named {named!r}")
            return None
        host, options = entry.record["host"], backends.targeted.for_backend(plain).under(entry.options)
    backends.tell_unused(record, options)
    options = options.under(backend_options(backends.context, record.get("policies")))
    if grpc:
        tls = policy.grpc_options.tls_of(backends.context, record, options.tls, host)
        policy.grpc_options.check(backends.context, record, options)
        options = replace(options, tls=tls, http2=True)
    if service is not None:
        found = backends.service(service["name"], service["port"], options)
        if not isinstance(found, ServiceBackend):
            backends.context.fault(Problem.REFERENCE, record, "service", f"there is no service {service['name']!r}")
            return None
        places = tuple((replace(one.endpoint, backs_off=True), one.capacity) for one in found.endpoints)
        return RemoteService(
            kind="service", name=service["name"], port=service["port"], places=places, policies=options.policies()
        )
    if host is None:
        return None
    endpoint = replace(backends.endpoint(host, options), backs_off=True)
    return RemoteService(
        kind="host" if named is None else "backend",
        name=endpoint.address if named is None else named,
        places=((endpoint, 1),),
        policies=options.policies(),
    )
