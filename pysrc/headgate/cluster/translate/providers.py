"""LLM providers of a GatewayBackend as providers of the file."""

from __future__ import annotations

import re
from typing import Any, Final

from headgate.cluster.snapshot import SERVICE, GroupKind, ObjectKey, Snapshot
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.services import address, cluster_host

_KINDS: Final = {
    "openai": "openAI",
    "azure": "azure",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "vertexai": "vertex",
}
# https://learn.microsoft.com/azure/ai-foundry/openai/reference: a resource has a host name of its own.
_AZURE_HOST: Final = re.compile(r"(?:https://)?([a-z0-9-]+)\.openai\.azure\.com/?")


def named_provider(snapshot: Snapshot, namespace: str, value: Json, used: set[ObjectKey]) -> Json:
    """Return a provider without its policies; ValueError if it cannot be said. `value`: has a `name` and one kind.
    `used`: takes the Service that it is."""
    found: Json = {"name": value["name"], "provider": _kind(value)}
    if "host" in value:
        found["hostOverride"] = address(value["host"], value["port"])
    elif reference := (value.get("custom") or {}).get("backendRef"):
        if GroupKind(reference.get("group", ""), reference.get("kind", "Service")) != SERVICE:
            raise ValueError(f"provider {value['name']}: a backendRef of kind {reference['kind']} is not supported")
        key = ObjectKey(namespace, reference["name"])
        # The loader takes the name of a Service that it knows for its endpoints.
        used.add(key)
        found["hostOverride"] = address(cluster_host(snapshot, key, reference["port"]), reference["port"])
    for name, ours in (("path", "pathOverride"), ("pathPrefix", "pathPrefix")):
        if name in value:
            found[ours] = value[name]
    return found


def _kind(value: Json) -> dict[str, Any]:
    for name, ours in _KINDS.items():
        if name in value:
            return {ours: dict(value[name])}
    if "bedrock" in value:
        return {"bedrock": _bedrock(value["bedrock"])}
    if "custom" in value:
        return {"custom": {name: one for name, one in value["custom"].items() if name != "backendRef"}}
    return {"azure": _older_azure(value["azureopenai"])}


def _bedrock(value: Json) -> Json:
    found = {name: one for name, one in value.items() if name != "guardrail"}
    if guard := value.get("guardrail"):
        found |= {"guardrailIdentifier": guard["identifier"], "guardrailVersion": guard["version"]}
    return found


def _older_azure(value: Json) -> Json:
    """Return a deployment at an endpoint as one of the resource whose endpoint it is."""
    resource = _AZURE_HOST.fullmatch(value["endpoint"].lower())
    if resource is None:
        raise ValueError("azureopenai.endpoint is not of the form https://<resource>.openai.azure.com")
    found: Json = {"resourceName": resource[1], "resourceType": "openAI"}
    if "apiVersion" in value:
        found["apiVersion"] = value["apiVersion"]
    if "deploymentName" in value:
        found["model"] = value["deploymentName"]
    return found
