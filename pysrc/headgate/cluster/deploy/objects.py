"""The objects that a Gateway is run with."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import secrets
from typing import Any, Final

from headgate.cluster.deploy import owned_kinds
from headgate.cluster.deploy.configuration import FILE, configuration_text
from headgate.cluster.deploy.naming import metadata, selector
from headgate.cluster.deploy.outcome import DeployRefused
from headgate.cluster.deploy.overlays import laid_over
from headgate.cluster.deploy.owned_kinds import OwnedKind
from headgate.cluster.deploy.parameters import MergedParameters
from headgate.cluster.deploy.pod import AUTHORITY_FILE, SESSION_KEY_FIELD, pod_template
from headgate.cluster.deploy.ports import service_ports
from headgate.cluster.deploy.settings import DeploySettings
from headgate.cluster.snapshot import Snapshot

Json = dict[str, Any]
SESSION_KEY_BYTES: Final = 32
SESSION_KEY_SUFFIX: Final = "-session-key"
AUTHORITY_SUFFIX: Final = "-xds-ca"


def new_session_key() -> str:
    """Return a random key for sessions, in hexadecimal digits."""
    return secrets.token_hex(SESSION_KEY_BYTES)


def rendered(
    snapshot: Snapshot, gateway: Json, settings: DeploySettings, session_key: str, parameters: MergedParameters
) -> list[Json]:
    """Return all objects of a Gateway, in the order in which they are applied.

    `session_key`: 64 hexadecimal digits; looked at only where the parameters have none. Raises DeployRefused, and
    NoUsablePort if no listener can be reached.
    """
    accounts_and_service = identity_and_service(snapshot, gateway, settings, parameters)
    config = configuration_text(parameters)
    found = [
        accounts_and_service[0],
        owned_kinds.CONFIG_MAP.document(metadata(gateway, settings.version), data={FILE: config}),
    ]
    sums = {"checksum/config": _sum(config)}
    if settings.authority:
        about = metadata(gateway, settings.version, AUTHORITY_SUFFIX)
        found.append(owned_kinds.CONFIG_MAP.document(about, data={AUTHORITY_FILE: settings.authority}))
        sums["checksum/xds-ca"] = _sum(settings.authority)
    if not parameters.own_session_key:
        found.append(session_key_secret(gateway, settings, session_key))
        sums["checksum/session-key"] = _sum(session_key)
    kind = owned_kinds.BY_KIND[parameters.workload]
    spec = {
        "selector": {"matchLabels": selector(gateway)},
        "template": pod_template(gateway, parameters, settings, sums),
    }
    found.append(_laid(kind, gateway, settings, parameters, spec=spec))
    found.append(accounts_and_service[1])
    return [*found, *_on_demand(gateway, settings, parameters, kind)]


def identity_and_service(
    snapshot: Snapshot, gateway: Json, settings: DeploySettings, parameters: MergedParameters
) -> tuple[Json, Json]:
    """Return the ServiceAccount and the Service: what a Gateway has wherever its processes run."""
    account = _laid(
        owned_kinds.SERVICE_ACCOUNT, gateway, settings, parameters, automountServiceAccountToken=False
    )
    spec: Json = {
        "type": "LoadBalancer",
        "selector": selector(gateway),
        "ports": service_ports(snapshot, gateway, settings.dummy_port),
    }
    if address := static_address(gateway):
        spec["loadBalancerIP"] = address
    return account, _laid(owned_kinds.SERVICE, gateway, settings, parameters, spec=spec)


def session_key_secret(gateway: Json, settings: DeploySettings, key: str) -> Json:
    """Return the Secret of a session key."""
    about = metadata(gateway, settings.version, SESSION_KEY_SUFFIX)
    data = {SESSION_KEY_FIELD: base64.b64encode(key.encode()).decode()}
    return owned_kinds.SECRET.document(about, type="Opaque", data=data)


def wanted_addresses(gateway: Json) -> list[tuple[str, str]]:
    """Return the types and values of `spec.addresses`; one without a value is the controller's to choose."""
    given = gateway["spec"].get("addresses") or ()
    return [(one.get("type") or "IPAddress", one["value"]) for one in given if one.get("value")]


def static_address(gateway: Json) -> str:
    """Return the IP address that `spec.addresses` asks for, "" for none. Raises DeployRefused if it asks for more or
    for no IP address."""
    asked = wanted_addresses(gateway)
    found = [value for kind, value in asked if kind == "IPAddress" and is_address(value)]
    if len(found) > 1:
        raise DeployRefused(f"spec.addresses: a Service has one address, not {len(found)}")
    if asked and not found:
        raise DeployRefused("spec.addresses: an IP address is needed")
    return found[0] if found else ""


def is_address(text: str) -> bool:
    """Tell whether a text is an address of IPv4 or IPv6."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _on_demand(
    gateway: Json, settings: DeploySettings, parameters: MergedParameters, workload: OwnedKind
) -> list[Json]:
    """Return what there is only with an overlay of its own."""
    name = metadata(gateway, settings.version)["name"]
    specs = {
        owned_kinds.DISRUPTION_BUDGET: {"selector": {"matchLabels": selector(gateway)}},
        owned_kinds.AUTOSCALER: {
            "scaleTargetRef": {"apiVersion": workload.version, "kind": workload.kind, "name": name}
        },
    }
    return [
        _laid(kind, gateway, settings, parameters, spec=spec)
        for kind, spec in specs.items()
        if parameters.overlays[overlay_name(kind)]
    ]


def overlay_name(kind: OwnedKind) -> str:
    """Return the field of GatewayParameters that has the overlay for a kind."""
    return kind.kind[0].lower() + kind.kind[1:]


def _laid(
    kind: OwnedKind, gateway: Json, settings: DeploySettings, parameters: MergedParameters, **content: Any
) -> Json:
    document = kind.document(metadata(gateway, settings.version), **content)
    return laid_over(document, parameters.overlays[overlay_name(kind)])


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
