"""GatewayParameters: how a gateway is run."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.formats import OBJECT_NAME, SHORT
from headgate.cluster.resources.schema import (
    ANYTHING,
    Json,
    at_least_one,
    at_most_one,
    default,
    described,
    exactly_one,
    flag,
    free_form,
    integer,
    listed,
    mapped,
    record,
    rule,
    text,
    words,
)
from headgate.cluster.resources.shapes import entry
from headgate.config.shape.process import LOGGING
from headgate.config.shape.vocabulary import WordChoice

_FORMAT: Final = entry(LOGGING, "format")
assert isinstance(_FORMAT, WordChoice)

_ENV_NAME: Final = text(1, 253, r"^[-._a-zA-Z][-._a-zA-Z0-9]*$")
_KEY_REF: Final = record({"name": OBJECT_NAME, "key": text(1, 253), "optional": flag()}, required=("name", "key"))
_FIELD_REF: Final = record({"apiVersion": text(1, 64), "fieldPath": text(1, 256)}, required=("fieldPath",))
_DECIMAL: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_QUANTITY: Final[Json] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "maxLength": 64,
    "pattern": rf"^(\+|-)?{_DECIMAL}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_DECIMAL}))?$",
    "x-kubernetes-int-or-string": True,
}
_RESOURCE_FIELD: Final = record(
    {"containerName": text(1, 63), "resource": text(1, 256), "divisor": _QUANTITY}, required=("resource",)
)
_SOURCES: Final = {
    "fieldRef": _FIELD_REF, "resourceFieldRef": _RESOURCE_FIELD, "configMapKeyRef": _KEY_REF, "secretKeyRef": _KEY_REF,
}  # fmt: skip
_ENV: Final = record(
    {"name": _ENV_NAME, "value": text(0, 32_768), "valueFrom": record(_SOURCES, rules=(exactly_one(*_SOURCES),))},
    required=("name",),
    rules=(at_most_one("value", "valueFrom"),),
)
_AMOUNTS: Final = mapped(_QUANTITY, 32)
_RESOURCES: Final = record(
    {
        "limits": _AMOUNTS,
        "requests": _AMOUNTS,
        "claims": listed(record({"name": text(1, 63), "request": text(1, 63)}, required=("name",)), 0, 16, key="name"),
    }
)

IMAGE: Final = record(
    {
        "registry": text(1, 256),
        "repository": text(1, 256),
        "tag": text(1, 128, r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"),
        "digest": text(1, 256, r"^[a-z0-9]+([+._-][a-z0-9]+)*:[0-9a-fA-F]{32,}$"),
        "pullPolicy": words("Always", "Never", "IfNotPresent"),
    }
)
_SECONDS: Final = integer(0, 31_536_000)
SHUTDOWN: Final = record(
    {
        "min": described(_SECONDS, "Seconds that connections are served on at least. Unset: 10."),
        "max": described(_SECONDS, "Seconds until the end at the latest. Unset: 60."),
    },
    rules=(
        rule(
            "(has(self.min) ? self.min : 10) <= (has(self.max) ? self.max : 60)",
            "min (10 if unset) must not be greater than max (60 if unset)",
        ),
    ),
)
ISTIO: Final = record(
    {
        "enabled": described(flag(), "The block alone turns the integration on; false turns it off."),
        "caAddress": SHORT,
        "trustDomain": SHORT,
        "additionalTrustDomains": listed(SHORT, 0, 64, unique=True),
        "clusterId": SHORT,
        "network": SHORT,
    }
)
_CSI: Final = record({"driver": default(text(1, 253), "csi.spiffe.io")})
_HOST_PATH: Final = record({"path": text(1, 1_024, "^/")}, required=("path",))
SPIFFE: Final = record(
    {
        "enabled": flag(),
        "source": record({"csi": _CSI, "hostPath": _HOST_PATH}, rules=(exactly_one("csi", "hostPath"),)),
        "mountPath": default(text(1, 1_024, "^/"), "/spiffe-workload-api"),
        "socketName": default(text(1, 253, "^[^/]+$"), "spire-agent.sock"),
    }
)
_CATALOG: Final = record(
    {"configMap": record({"name": OBJECT_NAME, "key": default(text(1, 253), "catalog.json")}, required=("name",))},
    required=("configMap",),
)
OVERLAY: Final = record(
    {
        "metadata": record({"labels": mapped(text(0, 63), 64), "annotations": mapped(text(0, 262_144), 64)}),
        "spec": dict(ANYTHING) | {"type": "object"},
    },
    rules=(rule("has(self.metadata) || has(self.spec)", "at least one of the fields in [metadata spec] must be set"),),
)
OVERLAYS: Final = (
    "deployment", "daemonSet", "service", "serviceAccount", "podDisruptionBudget", "horizontalPodAutoscaler",
)  # fmt: skip
_DAEMON_SET: Final = "has(self.workload) && has(self.workload.kind) && self.workload.kind == 'DaemonSet'"
SPEC: Final = record(
    {
        "workload": record({"kind": words("Deployment", "DaemonSet")}),
        "logging": record(
            {
                "level": described(
                    text(1, 1_024), "A level, or levels of modules: info,headgate.net=debug. Unset: info."
                ),
                "format": words(*reversed(_FORMAT.words)),
            },
            rules=(at_least_one("level", "format"),),
        ),
        "rawConfig": described(free_form(), "Merged under the generated configuration, whose fields win."),
        "image": IMAGE,
        "env": listed(_ENV, 0, 128, key="name"),
        "resources": _RESOURCES,
        "shutdown": SHUTDOWN,
        "istio": ISTIO,
        "spiffe": SPIFFE,
        "modelCatalog": described(
            record({"sources": listed(_CATALOG, 1, 16)}, required=("sources",)),
            "Counts at a Gateway only, not at its class.",
        ),
        **{name: OVERLAY for name in OVERLAYS},
    },
    rules=(
        rule(f"!has(self.daemonSet) || ({_DAEMON_SET})", "daemonSet needs workload.kind DaemonSet"),
        *(
            rule(f"!has(self.{name}) || !({_DAEMON_SET})", f"{name} may not be set with workload.kind DaemonSet")
            for name in ("deployment", "horizontalPodAutoscaler")
        ),
    ),
)
