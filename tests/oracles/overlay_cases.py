"""Patches of generated objects, for the routine that merges them and for kubectl, which does it by another one."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

POD: Json = {
    "containers": [
        {
            "name": "headgate", "image": "headgate:1", "args": ["-f", "x"],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
            "ports": [{"containerPort": 15020, "name": "metrics", "protocol": "TCP"}],
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "state", "mountPath": "/state"}],
            "securityContext": {"runAsUser": 10101, "capabilities": {"drop": ["ALL"]}},
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        },
        {"name": "other", "image": "other:1"},
    ],
    "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "config", "configMap": {"name": "main"}}, {"name": "state", "emptyDir": {}}],
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
        {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway"},
    ],
    "nodeSelector": {"a": "1", "b": "2"},
}  # fmt: skip
DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "main", "namespace": "edge"},
    "spec": {"selector": {"matchLabels": {"app": "main"}}, "template": {"metadata": {"labels": {"app": "main"}}, "spec": POD}},
}
SERVICE: Json = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "main", "namespace": "edge"},
    "spec": {"type": "LoadBalancer", "selector": {"app": "main"}, "ports": [{"name": "listener-80", "port": 80, "targetPort": 80, "protocol": "TCP"}, {"name": "listener-443", "port": 443, "targetPort": 443, "protocol": "TCP"}]},
}  # fmt: skip


def pod(**spec: Any) -> Json:
    return {"spec": {"template": {"spec": spec}}}


def container(**fields: Any) -> Json:
    return pod(containers=[{"name": "headgate", **fields}])


# By name: the object and the patch.
CASES: dict[str, tuple[Json, Json]] = {
    "a scalar": (DEPLOYMENT, {"spec": {"replicas": 3}}),
    "fields beside those that are there": (DEPLOYMENT, container(resources={"limits": {"cpu": "2"}, "requests": {"cpu": "1"}})),
    "an item of env is replaced in its place": (DEPLOYMENT, container(env=[{"name": "B", "value": "new"}])),
    "a new item of env": (DEPLOYMENT, container(env=[{"name": "D", "value": "4"}])),
    "new and old items of env in another order": (
        DEPLOYMENT, container(env=[{"name": "C", "value": "c"}, {"name": "D", "value": "4"}, {"name": "A", "value": "a"}]),
    ),
    "an item of env is deleted": (DEPLOYMENT, container(env=[{"name": "B", "$patch": "delete"}])),
    "one deleted, one changed, one added": (
        DEPLOYMENT, container(env=[{"name": "A", "$patch": "delete"}, {"name": "C", "value": "x"}, {"name": "N", "value": "n"}]),
    ),
    "deleted and added again": (DEPLOYMENT, container(env=[{"name": "A", "$patch": "delete"}, {"name": "A", "value": "again"}])),
    "what is deleted was not there": (DEPLOYMENT, container(env=[{"name": "Z", "$patch": "delete"}])),
    "a whole list of env": (DEPLOYMENT, container(env=[{"$patch": "replace"}, {"name": "X", "value": "x"}])),
    "a container beside": (DEPLOYMENT, pod(containers=[{"name": "side", "image": "side:1"}])),
    "a container is deleted": (DEPLOYMENT, pod(containers=[{"name": "other", "$patch": "delete"}])),
    "first containers": (DEPLOYMENT, pod(initContainers=[{"name": "first", "image": "first:1", "env": [{"name": "A", "value": "1"}]}])),
    "ports of a container by number": (DEPLOYMENT, container(ports=[{"containerPort": 80}, {"containerPort": 15020, "name": "stats"}])),
    "mounts by path": (DEPLOYMENT, container(volumeMounts=[{"mountPath": "/tmp", "name": "other"}, {"mountPath": "/new", "name": "tmp"}])),
    "volumes by name": (DEPLOYMENT, pod(volumes=[{"name": "config", "configMap": {"defaultMode": 256}}, {"name": "new", "emptyDir": {}}])),
    "a volume of another kind": (DEPLOYMENT, pod(volumes=[{"name": "config", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}])),
    "a volume is deleted": (DEPLOYMENT, pod(volumes=[{"name": "state", "$patch": "delete"}])),
    "tolerations are one value": (DEPLOYMENT, pod(tolerations=[{"key": "b", "operator": "Exists"}])),
    "arguments are one value": (DEPLOYMENT, container(args=["-x"], command=["/bin/x"])),
    "spread by key": (DEPLOYMENT, pod(topologySpreadConstraints=[{"topologyKey": "host", "maxSkew": 2}])),
    "no spread": (DEPLOYMENT, pod(topologySpreadConstraints=[{"$patch": "replace"}])),
    "a map is replaced": (DEPLOYMENT, pod(nodeSelector={"$patch": "replace", "c": "3"})),
    "a map is deleted": (DEPLOYMENT, container(securityContext={"$patch": "delete"})),
    "a key of a map is deleted": (DEPLOYMENT, pod(nodeSelector={"a": None})),
    "a null where nothing is": (DEPLOYMENT, pod(priorityClassName=None, nodeSelector={"z": None})),
    "a null for a list": (DEPLOYMENT, container(env=None)),
    "a null for an object": (DEPLOYMENT, container(resources={"requests": None})),
    "the strategy": (DEPLOYMENT, {"spec": {"strategy": {"type": "Recreate"}}}),
    "names of secrets": (DEPLOYMENT, pod(imagePullSecrets=[{"name": "one"}, {"name": "two"}])),
    "names of hosts by address": (DEPLOYMENT, pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a", "b"]}])),
    "an affinity": (DEPLOYMENT, pod(affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "host"}}]}})),
    "sources of env are one value": (DEPLOYMENT, container(envFrom=[{"configMapRef": {"name": "a"}}])),
    "the kind of a service": (SERVICE, {"spec": {"type": "ClusterIP"}}),
    "ports of a service by number": (SERVICE, {"spec": {"ports": [{"port": 443, "nodePort": 30443}]}}),
    "another port of a service": (SERVICE, {"spec": {"ports": [{"port": 8443, "name": "more"}]}}),
    "all ports of a service": (SERVICE, {"spec": {"ports": [{"$patch": "replace"}, {"port": 1, "name": "one"}]}}),
    "ranges are one value": (SERVICE, {"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}),
}  # fmt: skip
