"""Settings of the controller: environment variables, of which flags come first."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.cluster.controller.components import LEVELS
from headgate.cluster.errors import ClusterError
from headgate.cluster.snapshot import OWN, Json

PREFIX: Final = "HEADGATE_"
CLASS: Final = "headgate"
# Where leases and Secrets of the controller are, if neither the environment nor a service account says so.
NAMESPACE: Final = "headgate-system"
_SELECTOR: Final = frozenset(("matchLabels", "matchExpressions"))
_REFERENCE: Final = frozenset(("group", "kind", "name", "namespace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """`bind`: address of the health and metrics servers. `namespace`: of the controller. `identity`: of this replica.
    `election`: whether only one of several replicas writes. `class_name`: the GatewayClass that is made, "" for none;
    `class_parameters`: by class the `parametersRef` that it gets. `selectors`: of namespaces that are looked at.
    `inference`: whether InferencePools, and the pods in them, are read. `global_policies`: a namespace whose
    GatewayPolicies may be about objects of all namespaces, "" for none."""

    namespace: str = NAMESPACE
    identity: str = field(default_factory=socket.gethostname)
    lease: str = "headgate-headgate"
    election: bool = True
    class_name: str = CLASS
    class_parameters: Mapping[str, Json] = field(default_factory=dict)
    selectors: tuple[Json, ...] = ()
    inference: bool = False
    global_policies: str = ""
    log_level: str = "info"
    log_format: str = "json"
    bind: str = "0.0.0.0"  # noqa: S104 (probes and scrapes come from other machines)
    health_port: int = 9093
    metrics_port: int = 9092
    admin_port: int = 9095


def settings_of(environ: Mapping[str, str], namespace: str = "") -> ControllerSettings:
    """Return the settings that variables say. `namespace`: that of the service account. Raises ClusterError."""
    reader = SettingReader(environ)
    default = ControllerSettings()
    return ControllerSettings(
        namespace=reader.text("NAMESPACE", environ.get("POD_NAMESPACE") or namespace or NAMESPACE),
        # One of its own for each process: two that share it would both lead.
        identity=reader.text("IDENTITY", f"{environ.get('POD_NAME') or default.identity}_{secrets.token_hex(4)}"),
        lease=reader.text("LEASE_NAME", default.lease),
        election=not reader.flag("DISABLE_LEADER_ELECTION"),
        class_name=environ.get(f"{PREFIX}GATEWAY_CLASS_NAME", CLASS),
        class_parameters=reader.references("GATEWAY_CLASS_PARAMETERS_REFS"),
        selectors=reader.selectors("DISCOVERY_NAMESPACE_SELECTORS"),
        inference=reader.flag("ENABLE_INFERENCE"),
        global_policies=reader.text("GLOBAL_POLICY_NAMESPACE", ""),
        log_level=reader.choice("LOG_LEVEL", tuple(LEVELS), default.log_level),
        log_format=reader.choice("LOG_FORMAT", ("json", "text"), default.log_format),
        bind=reader.text("BIND_ADDRESS", default.bind),
        health_port=reader.port("HEALTH_PORT", default.health_port),
        metrics_port=reader.port("METRICS_PORT", default.metrics_port),
        admin_port=reader.port("ADMIN_PORT", default.admin_port),
    )


class SettingReader:
    """Variables by their names without the prefix. Raises ClusterError, which names the variable."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def text(self, name: str, default: str) -> str:
        return self._environ.get(PREFIX + name) or default

    def choice(self, name: str, words: tuple[str, ...], default: str) -> str:
        found = self.text(name, default)
        if found not in words:
            raise ClusterError(f"{PREFIX}{name}: one of {', '.join(words)} is expected, found {found!r}")
        return found

    def flag(self, name: str) -> bool:
        return self.choice(name, ("true", "false"), "false") == "true"

    def port(self, name: str, default: int) -> int:
        found = self.text(name, str(default))
        if not found.isascii() or not found.isdigit() or len(found) > 5 or not 0 <= int(found) <= 65_535:
            raise ClusterError(f"{PREFIX}{name}: a port is expected, found {found!r}")
        return int(found)

    def selectors(self, name: str) -> tuple[Json, ...]:
        """Return a list of label selectors, of which one is enough."""
        found = self._json(name, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) and one.keys() <= _SELECTOR for one in found):
            raise ClusterError(f"{PREFIX}{name}: a list of objects with {' and '.join(sorted(_SELECTOR))} is expected")
        for one in found:
            for each in one.get("matchExpressions") or ():
                if not isinstance(each, dict) or not {"key", "operator"} <= each.keys():
                    raise ClusterError(f"{PREFIX}{name}: matchExpressions: key and operator are expected")
        return tuple(found)

    def references(self, name: str) -> dict[str, Json]:
        """Return by class the reference to its parameters."""
        found = self._json(name, {})
        if not isinstance(found, dict):
            raise ClusterError(f"{PREFIX}{name}: expected an object")
        for key, one in found.items():
            if not isinstance(one, dict) or not one.get("name") or not one.keys() <= _REFERENCE:
                raise ClusterError(f"{PREFIX}{name}: {key}: name, and perhaps namespace, group and kind, are expected")
        return {key: {"group": OWN, "kind": "GatewayParameters", **one} for key, one in found.items()}

    def _json(self, name: str, default: Any) -> Any:
        text = self.text(name, "")
        try:
            return json.loads(text) if text else default
        except ValueError:
            raise ClusterError(f"{PREFIX}{name}: JSON is expected") from None
