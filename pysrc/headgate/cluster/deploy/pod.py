"""The template of a Gateway's pods."""

from __future__ import annotations

from typing import Any, Final

from headgate.cluster.deploy.configuration import CATALOGS, FILE, catalog_key, log_filter
from headgate.cluster.deploy.naming import extra_annotations, labels, selector, short_name
from headgate.cluster.deploy.parameters import MergedParameters
from headgate.cluster.deploy.settings import DeploySettings, ProxyImage

Json = dict[str, Any]
USER: Final = 10_101
STATS_PORT: Final = 15_020
READY_PORT: Final = 15_021
READY_PATH: Final = "/healthz/ready"
CONTAINER: Final = "headgate"
TOKEN_SECONDS: Final = 43_200
TOKEN_FOLDER: Final = "/var/run/secrets/xds-tokens"  # noqa: S105 (a place, no credential)
TOKEN_FILE: Final = "xds-token"  # noqa: S105
AUTHORITY_FOLDER: Final = "/etc/xds-tls"
AUTHORITY_FILE: Final = "ca.crt"
STATE_FOLDER: Final = "/var/lib/headgate"
SESSION_KEY_FIELD: Final = "key"
_CATALOG_VOLUME: Final = "model-catalog-"
_WORKLOAD_SOCKETS: Final = "spiffe-workload-api"
_REQUESTS: Final = {"cpu": "100m", "memory": "128Mi"}
# What is fit to be one variable of a pod's environment, from a field of the pod.
_FIELDS: Final = {
    "NODE_NAME": "spec.nodeName",
    "POD_NAMESPACE": "metadata.namespace",
    "POD_NAME": "metadata.name",
    "NAMESPACE": "metadata.namespace",
    "INSTANCE_IP": "status.podIP",
    "SERVICE_ACCOUNT": "spec.serviceAccountName",
}


def image_name(image: ProxyImage) -> str:
    """Return `registry/repository:tag@digest`, without the parts that are not there."""
    found = "/".join(part for part in (image.registry, image.repository) if part)
    return found + (f":{image.tag}" if image.tag else "") + (f"@{image.digest}" if image.digest else "")


def pod_template(gateway: Json, parameters: MergedParameters, settings: DeploySettings, sums: Json) -> Json:
    """Return the template. `sums`: annotations that change with what pods read once, so that these are replaced."""
    name = short_name(gateway["metadata"]["name"])
    scraped = {"prometheus.io/scrape": "true", "prometheus.io/path": "/metrics", "prometheus.io/port": str(STATS_PORT)}
    spec: Json = {
        "serviceAccountName": name,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            # Ports such as 80 for a process without privileges.
            "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
        },
        "terminationGracePeriodSeconds": parameters.longest,
        "containers": [_container(name, parameters, settings)],
        "volumes": _volumes(name, parameters, settings),
    }
    if parameters.workload == "Deployment":
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector(gateway)},
            }
            for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ]
    return {
        "metadata": {
            "labels": labels(gateway, settings.version),
            "annotations": {**extra_annotations(gateway), **scraped, **sums},
        },
        "spec": spec,
    }


def _container(name: str, parameters: MergedParameters, settings: DeploySettings) -> Json:
    ready = {"httpGet": {"path": READY_PATH, "port": READY_PORT}, "timeoutSeconds": 2}
    return {
        "name": CONTAINER,
        "image": image_name(parameters.image),
        "imagePullPolicy": parameters.image.pull_policy,
        "args": ["-f", f"/config/{FILE}"],
        "env": environment(name, parameters, settings),
        "ports": [{"name": "metrics", "containerPort": STATS_PORT, "protocol": "TCP"}],
        "resources": {**parameters.resources, "requests": {**_REQUESTS, **parameters.resources.get("requests", {})}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
        },
        "startupProbe": {**ready, "periodSeconds": 1, "failureThreshold": 60},
        "readinessProbe": {**ready, "periodSeconds": 10},
        "volumeMounts": _mounts(parameters, settings),
    }


def environment(name: str, parameters: MergedParameters, settings: DeploySettings) -> list[Json]:
    """Return the variables of the container; those of the parameters take the place of ours, or stand behind them."""
    found: list[Json] = [
        {"name": "TERMINATION_GRACE_PERIOD_SECONDS", "value": str(parameters.longest)},
        {"name": "CONNECTION_MIN_TERMINATION_DEADLINE", "value": f"{parameters.shortest}s"},
        *({"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in _FIELDS.items()),
        {"name": "CPU_LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "GATEWAY", "value": name},
        {"name": "XDS_ADDRESS", "value": settings.xds_address},
        {"name": "XDS_TOKEN_FILE", "value": f"{TOKEN_FOLDER}/{TOKEN_FILE}"},
        {"name": "STATE_DIRECTORY", "value": STATE_FOLDER},
    ]
    if settings.authority:
        found.append({"name": "XDS_ROOT_CA", "value": f"{AUTHORITY_FOLDER}/{AUTHORITY_FILE}"})
    if (level := log_filter(parameters)) is not None:
        found.append({"name": "RUST_LOG", "value": level})
    if not parameters.own_session_key:
        reference = {"name": f"{name}-session-key", "key": SESSION_KEY_FIELD}
        found.append({"name": "SESSION_KEY", "valueFrom": {"secretKeyRef": reference}})
    if parameters.spiffe is not None:
        found.append({"name": "SPIFFE_ENDPOINT_SOCKET", "value": _workload_socket(parameters.spiffe)})
    named = {one["name"]: one for one in found}
    named.update((one["name"], one) for one in parameters.env)
    return list(named.values())


def _workload_socket(spiffe: Json) -> str:
    return f"unix://{_workload_folder(spiffe)}/{spiffe.get('socketName') or 'spire-agent.sock'}"


def _workload_folder(spiffe: Json) -> str:
    return str(spiffe.get("mountPath") or "/spiffe-workload-api").rstrip("/")


def _volumes(name: str, parameters: MergedParameters, settings: DeploySettings) -> list[Json]:
    token = {
        "serviceAccountToken": {
            "audience": settings.audience,
            "expirationSeconds": TOKEN_SECONDS,
            "path": TOKEN_FILE,
        }
    }
    found: list[Json] = [
        {"name": "config", "configMap": {"name": name}},
        {"name": "tmp", "emptyDir": {}},
        # What was served last, for a container that starts anew while the controller is away.
        {"name": "state", "emptyDir": {}},
        {"name": "xds-token", "projected": {"sources": [token]}},
    ]
    if settings.authority:
        found.append({"name": "xds-ca", "configMap": {"name": f"{name}-xds-ca"}})
    for index, (config_map, keys) in enumerate(_catalogs(parameters).items()):
        items = [{"key": key, "path": key} for key in keys]
        found.append({"name": f"{_CATALOG_VOLUME}{index}", "configMap": {"name": config_map, "items": items}})
    if parameters.spiffe is not None:
        found.append({"name": _WORKLOAD_SOCKETS, **_workload_source(parameters.spiffe)})
    return found


def _workload_source(spiffe: Json) -> Json:
    source = spiffe.get("source") or {}
    if source.get("hostPath"):
        return {"hostPath": {"path": source["hostPath"]["path"], "type": "Directory"}}
    driver = (source.get("csi") or {}).get("driver") or "csi.spiffe.io"
    return {"csi": {"driver": driver, "readOnly": True}}


def _mounts(parameters: MergedParameters, settings: DeploySettings) -> list[Json]:
    found: list[Json] = [
        {"name": "config", "mountPath": "/config", "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 (of the pod alone)
        {"name": "state", "mountPath": STATE_FOLDER},
        {"name": "xds-token", "mountPath": TOKEN_FOLDER, "readOnly": True},
    ]
    if settings.authority:
        found.append({"name": "xds-ca", "mountPath": AUTHORITY_FOLDER, "readOnly": True})
    for index, config_map in enumerate(_catalogs(parameters)):
        found.append(
            {"name": f"{_CATALOG_VOLUME}{index}", "mountPath": f"{CATALOGS}/{config_map}", "readOnly": True}
        )
    if parameters.spiffe is not None:
        found.append(
            {"name": _WORKLOAD_SOCKETS, "mountPath": _workload_folder(parameters.spiffe), "readOnly": True}
        )
    return found


def _catalogs(parameters: MergedParameters) -> dict[str, list[str]]:
    """Return the keys of prices by their ConfigMap."""
    found: dict[str, list[str]] = {}
    for one in parameters.catalog:
        keys = found.setdefault(one["name"], [])
        if (key := catalog_key(one)) not in keys:
            keys.append(key)
    return found
