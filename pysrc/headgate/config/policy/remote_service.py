"""The service that a policy calls, as the configuration dump prints it."""

from __future__ import annotations

from typing import Any

from headgate.config.policy import backend_auth, headers, transformation
from headgate.document.fields import show_milliseconds
from headgate.ir.remote_service import RemoteService


def dump_target(service: RemoteService) -> dict[str, Any]:
    """Return the entry that names the service."""
    name: Any = {"name": service.name, "port": service.port} if service.kind == "service" else service.name
    return {service.kind: name}


def dump_policies(service: RemoteService, timeout_ms: int) -> dict[str, Any]:
    """Return the `policies` of its calls."""
    policies: dict[str, Any] = {"http": {"requestTimeout": show_milliseconds(timeout_ms)}}
    if service.policies.request_headers is not None:
        policies["requestHeaderModifier"] = headers.dump(service.policies.request_headers)
    if service.policies.transformations is not None:
        policies["transformations"] = transformation.dump(service.policies.transformations)
    if service.policies.auth is not None:
        policies["backendAuth"] = backend_auth.dump(service.policies.auth)
    tls = next((place.tls for place, _ in service.places if place.tls is not None), None)
    if tls is not None:
        policies["backendTLS"] = {} if tls.hostname is None else {"hostname": tls.hostname}
    return policies
