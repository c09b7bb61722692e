"""Where `requestMirror` sends its copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.config.check import Record
from headgate.config.policy_values import NO_OPTIONS
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.backend import ServiceBackend
from headgate.ir.policy.mirror import CopyTarget

if TYPE_CHECKING:
    from headgate.config.backends import Backends


def parse(backends: Backends, target: Record) -> CopyTarget | None:
    """Return the endpoint of a mirror target. Returns None after reporting an error."""
    service, host, named = (target.get(key) for key in ("service", "host", "backend"))
    options = NO_OPTIONS
    if named is not None:
        entry = backends.named(named.removeprefix("/"))
        if entry is None:
            backends.context.fault(Problem.REFERENCE, target, "backend", f"no backend is named {named!r}")
            return None
        host, options = entry.record.get("host"), entry.options
        if host is None:
            backends.context.fault(Problem.VALUE, target, "backend", "backend type cannot be used in mirror")
            return None
        if options.auth is not None and options.auth.fixed_header is None:
            what = " (backendAuth other than a key in a header)"
            backends.context.fault(Problem.UNSUPPORTED, target, "backend", what)
    if service is not None:
        options = replace(NO_OPTIONS, tls=backends.service_options(target).tls)
        found = backends.service(service["name"], service["port"], options)
        if not isinstance(found, ServiceBackend):
            backends.context.fault(Problem.REFERENCE, target, "service", f"there is no service {service['name']!r}")
            return None
        places = tuple((one.endpoint, one.capacity) for one in found.endpoints)
        return CopyTarget(kind="service", name=service["name"], port=service["port"], places=places)
    if host is None:
        return None
    endpoint = backends.endpoint(host, options)
    credential = None if options.auth is None else options.auth.fixed_header
    if named is None:
        return CopyTarget(kind="host", name=endpoint.address, places=((endpoint, 1),))
    return CopyTarget(kind="backend", name=named, places=((endpoint, 1),), credential=credential)
