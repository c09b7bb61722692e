"""Backends of the file as GatewayBackends."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from headgate.cluster.convert.calls import calls
from headgate.cluster.convert.conversion import Conversion, renamed, spelled_words, word
from headgate.cluster.convert.objects import slug
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.translate.fragments import Json
from headgate.document import fields

_KINDS: Final = {
    "openAI": "openai", "gemini": "gemini", "vertex": "vertexai", "anthropic": "anthropic", "azure": "azure",
    "bedrock": "bedrock", "custom": "custom",
}  # fmt: skip
_PROTOCOLS: Final = {"mcp": "StreamableHTTP", "sse": "SSE"}
_SCHEME_PORTS: Final = {"http": 80, "https": 443}


def host_backend(of: Conversion, host: str, policies: SaidMap, about: str) -> str:
    """Return the name of the GatewayBackend for a host."""
    spec = _host(of, host, policies)
    rest = () if "a2a" not in spec else ("a2a",)
    return _made(of, about, spec | _policies(of.named(about), policies, *rest))


def backend(of: Conversion, value: SaidMap, about: str, *elsewhere: str) -> str | None:
    """Return the name of the GatewayBackend for a backend of a route or one with a name; None, and a loss, for what
    cannot be converted. `elsewhere`: policies that are converted by the caller."""
    policies, own = value.inner("policies"), of.named(about)
    if "host" in value:
        spec = _host(of, value["host"], policies)
    elif "ai" in value:
        spec = {"ai": _ai(own, value["ai"])}
    elif "mcp" in value:
        spec = {"mcp": mcp(own, value["mcp"])}
    elif "aws" in value:
        spec = {"aws": {"agentCore": dict(value["aws"]["agentCore"])}}
    elif "dynamic" in value:
        spec = {"dynamicForwardProxy": dict(value["dynamic"])}
    else:
        of.losses.add(value, next(name for name in value if name not in ("name", "weight", "policies")))
        return None
    if not next(iter(spec.values())) and "dynamic" not in value:
        return None
    rest = (*elsewhere, *(("a2a",) if "a2a" in spec else ()))
    return _made(of, about, spec | _policies(own, policies, *rest))


def _made(of: Conversion, about: str, spec: Json) -> str:
    return of.objects.shared("GatewayBackend", of.namespace, about, {"spec": spec})


def _policies(of: Conversion, value: SaidMap, *elsewhere: str) -> Json:
    found = calls(of, value, *elsewhere)
    return {"policies": found} if found else {}


def _host(of: Conversion, text: str, policies: SaidMap) -> Json:
    place = fields.target(text)
    if place.scheme == "https" and "backendTLS" not in policies:
        # What an https URL means beside a host and port.
        policies["backendTLS"] = SaidMap("BackendTls", policies.path, policies.line)
    if place.unix_path:
        return {"static": {"unixPath": place.unix_path}}
    kind = "a2a" if "a2a" in policies else "static"
    return {kind: {"host": place.host, "port": place.port}}


def _ai(of: Conversion, value: SaidMap) -> Json:
    if "groups" not in value:
        found = _provider(of, value)
        return (
            {"provider": {key: one for key, one in found.items() if key not in ("name", "policies")}}
            if (found and "policies" not in found)
            else ({"groups": [{"providers": [found]}]} if found else {})
        )
    groups = []
    for one in value["groups"]:
        made = [found for each in one["providers"] if (found := _provider(of, each))]
        if made:
            groups.append({"providers": made})
    return {"groups": groups} if groups else {}


def _provider(of: Conversion, value: SaidMap) -> Json:
    of.losses.rest(value, "name", "provider", "hostOverride", "pathOverride", "pathPrefix", "policies")
    [(kind, said)] = value["provider"].items()
    if kind not in _KINDS:
        of.losses.add(value["provider"], kind)
        return {}
    found: Json = {"name": slug(value["name"]), _KINDS[kind]: _settings(of, kind, said)}
    if "hostOverride" in value:
        place = fields.target(value["hostOverride"])
        if place.unix_path:
            of.losses.add(value, "hostOverride", "a provider needs a host and a port: Unix sockets are not possible")
        else:
            found |= {"host": place.host, "port": place.port}
            if place.scheme == "http":
                of.losses.add(value, "hostOverride", "write host:port: TLS is set by policies, not by a scheme")
    for ours, theirs in (("pathOverride", "path"), ("pathPrefix", "pathPrefix")):
        if ours in value:
            found[theirs] = value[ours]
    return found | _policies(of.named(f"{of.about}-{value['name']}"), value.inner("policies"))


def _settings(of: Conversion, kind: str, value: SaidMap) -> Json:
    if kind == "bedrock":
        found: Json = {name: value[name] for name in ("model", "region") if name in value}
        if "guardrailIdentifier" in value and "guardrailVersion" in value:
            guard = {"identifier": value["guardrailIdentifier"], "version": value["guardrailVersion"]}
            return found | {"guardrail": guard}
        of.losses.rest(value, "model", "region")
        return found
    if kind == "azure":
        return spelled_words(dict(value), "resourceType")
    if kind == "custom":
        found = renamed(value, {"model": "model", "formats": "formats"}, of.losses)
        return found | {"formats": [spelled_words(dict(one), "type") for one in value["formats"]]}
    if kind == "openAI" and "moderation" in value:
        guard = {**value["moderation"]}
        if "policy" in guard:
            guard["policy"] = {side: spelled_words(dict(one), "mode") for side, one in guard["policy"].items()}
        return {**value, "moderation": guard}
    return dict(value)


def mcp(of: Conversion, value: SaidMap) -> Json:
    """Return `mcp` of a GatewayBackend; an empty map if none of its targets has a form."""
    of.losses.rest(value, "targets", "statefulMode", "prefixMode", "failureMode", "gateways", "port", "policies")
    targets = [made for one in value["targets"] if (made := _target(of, one)) is not None]
    names = {"statefulMode": "sessionRouting", "prefixMode": "prefixMode", "failureMode": "failureMode"}
    found = {theirs: word(value[ours]) for ours, theirs in names.items() if ours in value}
    return {"targets": targets, **found} if targets else {}


def _target(of: Conversion, value: SaidMap) -> Json | None:
    form = next(name for name in ("mcp", "sse", "stdio", "openapi") if name in value)
    if form not in _PROTOCOLS:
        of.losses.add(value, form)
        return None
    said, policies = value[form], value.inner("policies")
    place = _place(of, said, policies)
    if place is None:
        return None
    found = {**place, "protocol": _PROTOCOLS[form]}
    made = _policies(of.named(f"{of.about}-{value['name']}"), policies)
    return {"name": value["name"], "static": found | made}


def _place(of: Conversion, value: SaidMap, policies: SaidMap) -> Json | None:
    """Return host, port and path of a server of MCP."""
    if "backend" in value:
        known = of.hosts.get(value["backend"])
        if known is None or known.get("policies"):
            of.losses.add(value, "backend", "MCP targets of a resource are hosts, without policies of a backend")
            return None
        place = fields.target(known["host"])
        return {"host": place.host, "port": place.port} | ({"path": value["path"]} if "path" in value else {})
    if "port" in value:
        return {name: value[name] for name in ("host", "port", "path")}
    text = value["host"]
    if "://" not in text:
        found = fields.target(text)
        return {"host": found.host, "port": found.port}
    parts = urlsplit(text)
    if parts.scheme == "https" and "backendTLS" not in policies:
        policies["backendTLS"] = SaidMap("BackendTls", policies.path, policies.line)
    # Of a URL the path is said, of an address alone it is the protocol's.
    path = {"path": parts.path or "/"}
    if parts.query or parts.username:
        of.losses.add(value, "host", "URLs in resources have no query and no user information")
    return {"host": parts.hostname or "", "port": parts.port or _SCHEME_PORTS[parts.scheme], **path}
