"""Gateways with parameters, for golden files of what they are run with."""

from __future__ import annotations

from typing import Any

from manifests import Json, gateway, gateway_class, listener, made, own

from headgate.cluster.deploy.settings import DeploySettings

SETTINGS = DeploySettings(xds_address="https://headgate.headgate-system.svc:9978", authority="-- a certificate --\n", version="1.0.0")
SESSION_KEY = "0123456789abcdef" * 4


def parameters(name: str, **spec: Any) -> Json:
    return made("GatewayParameters", name, spec, "headgate.dev/v1alpha1")


def edge(*listeners: Json, refers: str = "", name: str = "edge/main", **more: Any) -> Json:
    """Return a Gateway; `refers`: to these parameters."""
    found = gateway(*(listeners or (listener(), listener("tls", 443, "HTTPS"))), name=name, uid="uid-of-the-gateway")
    infrastructure = more.pop("infrastructure", {})
    if refers:
        infrastructure = {**infrastructure, "parametersRef": own(refers, "GatewayParameters")}
    if infrastructure:
        found["spec"]["infrastructure"] = infrastructure
    found["metadata"] |= more.pop("metadata", {})
    found["spec"] |= more
    return found


def class_with(name: str) -> Json:
    found = gateway_class()
    namespace, _, own_name = name.partition("/")
    found["spec"]["parametersRef"] = own(own_name, "GatewayParameters", namespace=namespace)
    return found


ENV = [{"name": "RUST_LOG", "value": "debug"}, {"name": "A", "value": "class"}, {"name": "B", "value": "class"}]
# By the name of the golden file: what is in the cluster beside the class, or with a class of its own.
CASES: dict[str, list[Json]] = {
    "plain": [edge()],
    "typed": [
        edge(refers="main"),
        parameters(
            "edge/main", image={"registry": "registry.test", "repository": "own/headgate", "digest": "sha256:" + "0" * 64, "pullPolicy": "Always"},
            env=[{"name": "SESSION_KEY", "value": "f" * 64}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            resources={"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, shutdown={"min": 5, "max": 90}, logging={"level": "info,headgate.net=debug", "format": "json"},
            rawConfig={"config": {"logging": {"format": "text"}, "metrics": {"remove": ["a"]}, "dns": {"lookupFamily": "V4Only"}}},
            modelCatalog={"sources": [{"configMap": {"name": "prices", "key": "catalog.json"}}, {"configMap": {"name": "prices", "key": "more.json"}}]},
            spiffe={"source": {"hostPath": {"path": "/run/spire"}}},
        ),
    ],
    "both-layers": [
        class_with("system/all"), edge(refers="main"),
        parameters(
            "system/all", env=ENV, image={"tag": "class"}, resources={"limits": {"cpu": "1", "memory": "1Gi"}},
            modelCatalog={"sources": [{"configMap": {"name": "of-the-class"}}]},
            deployment={"metadata": {"labels": {"team": "class", "tier": "edge"}}, "spec": {"replicas": 2, "template": {"spec": {"priorityClassName": "high", "nodeSelector": {"a": "1"}}}}},
            podDisruptionBudget={"spec": {"minAvailable": 1}}, horizontalPodAutoscaler={"spec": {"maxReplicas": 5}},
            service={"metadata": {"annotations": {"balancer": "class"}}, "spec": {"externalTrafficPolicy": "Local"}},
        ),
        parameters(
            "edge/main", env=[{"name": "B", "value": "gateway"}, {"name": "C", "value": "gateway"}], image={"repository": "mine"}, resources={"limits": {"cpu": "2"}},
            deployment={
                "metadata": {"labels": {"team": "gateway"}},
                "spec": {"replicas": None, "template": {"spec": {"nodeSelector": {"$patch": "delete"}, "containers": [{"name": "headgate", "env": [{"name": "A", "$patch": "delete"}]}]}}},
            },
            podDisruptionBudget={"spec": {"minAvailable": None, "maxUnavailable": 1}}, horizontalPodAutoscaler={"metadata": {"labels": {"team": "gateway"}}},
            serviceAccount={"metadata": {"annotations": {"role": "reader"}}, "spec": {"imagePullSecrets": [{"name": "pull"}]}},
        ),
    ],
    "daemon-set": [
        edge(refers="main"),
        parameters("edge/main", workload={"kind": "DaemonSet"}, daemonSet={"spec": {"updateStrategy": {"type": "OnDelete"}}}, spiffe={"mountPath": "/sockets/", "socketName": "s.sock"}),
    ],
    "infrastructure": [
        edge(
            listener(), listener("more", 8080), listener("same", 80), listener("admin", 15000), listener("inner", 9000),
            infrastructure={"labels": {"key2": "value2", "gateway.networking.k8s.io/gateway-name": "stolen", "app.kubernetes.io/name": "stolen"}, "annotations": {"key1": "value1"}},
            metadata={"annotations": {"headgate.dev/internal-ports": "9000"}}, addresses=[{"type": "IPAddress", "value": "192.0.2.7"}],
        ),
    ],
    "long-name": [edge(name="edge/" + "n" * 49 + "-" + "m" * 30, listeners=[])],
}  # fmt: skip
