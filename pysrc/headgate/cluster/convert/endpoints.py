"""Services that policies call: `service`, `host` or `backend` of the file as `backendRef` or `url`."""

from __future__ import annotations

import re
from typing import Final

from headgate.cluster.convert.conversion import Conversion
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.snapshot import OWN
from headgate.cluster.translate.fragments import Json
from headgate.document import fields

_IN_CLUSTER: Final = re.compile(r"([^/.]+)/([^/.]+)\.([^/.]+)\.svc\.cluster\.local")
FIELDS: Final = ("service", "host", "backend", "policies")


def service_ref(of: Conversion, value: SaidMap) -> Json | None:
    """Return the reference to a Service for `service`, None (and a loss) for a name that no Service has."""
    service = value["service"]
    found = _IN_CLUSTER.fullmatch(service["name"])
    if found is None or found[1] != found[3]:
        of.losses.add(service, "name", "the name of a Service must be <namespace>/<name>.<namespace>.svc.cluster.local")
        return None
    space = {} if found[1] == of.namespace else {"namespace": found[1]}
    return {"name": found[2], **space, "port": service["port"]}


def backend_ref(of: Conversion, name: str) -> Json:
    """Return the reference to the GatewayBackend of a named backend."""
    space = {} if of.home in ("", of.namespace) else {"namespace": of.home}
    return {"group": OWN, "kind": "GatewayBackend", "name": of.backends[name], **space}


def endpoint(of: Conversion, value: SaidMap) -> Json:
    """Return `backendRef` or `url`; an empty map, and a loss, for what cannot be converted."""
    from headgate.cluster.convert.backends import host_backend  # its policies call services

    if "service" in value:
        of.losses.rest(value.inner("policies"))
        reference = service_ref(of, value)
        return {} if reference is None else {"backendRef": reference}
    if "backend" in value:
        of.losses.rest(value.inner("policies"))
        if value["backend"] not in of.backends:
            of.losses.add(value, "backend", f"backend {value['backend']} cannot be converted")
            return {}
        return {"backendRef": backend_ref(of, value["backend"])}
    place = fields.target(value["host"])
    if place.unix_path or value.get("policies"):
        name = host_backend(of, value["host"], value.inner("policies"), of.about)
        return {"backendRef": {"group": OWN, "kind": "GatewayBackend", "name": name}}
    return {"url": value["host"] if place.scheme else f"http://{value['host']}"}
