"""Policies of calls to backends as `backend` of a GatewayPolicy, or `policies` of a GatewayBackend."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from headgate.cluster.convert.conversion import Conversion, pairs, renamed, spelled_words, word
from headgate.cluster.convert.credentials import auth, tls
from headgate.cluster.convert.endpoints import FIELDS, endpoint
from headgate.cluster.convert.guards import prompt_guard
from headgate.cluster.convert.rules import ONE_ACTION, grouped
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.convert.transforms import transformation
from headgate.cluster.translate.fragments import Json

# Of policies of routes, those that are said of the calls.
OF_CALLS: Final = (
    "backendTLS", "backendAuth", "backendTunnel", "ai", "mcpAuthorization", "mcpGuardrails", "http", "tcp", "health",
)  # fmt: skip
_KEEPALIVE: Final = ("time", "interval", "retries")


def calls(of: Conversion, value: SaidMap, *elsewhere: str) -> Json:
    """Return a section `backend`. `elsewhere`: fields that are converted by somebody else."""
    readers: dict[str, Callable[[Any], Json]] = {
        "backendTLS": lambda one: {"tls": tls(of, one)},
        "backendAuth": lambda one: _auth(of, value, one),
        "backendTunnel": lambda one: _tunnel(of, one),
        "http": lambda one: {"http": spelled_words(dict(one), "version")},
        "tcp": lambda one: {"tcp": _tcp(one)},
        "health": lambda one: {"health": _health(of, one)},
        "transformations": lambda one: {"transformation": transformation(of, one)},
        "extAuthz": lambda one: {"extAuth": asked(of, one)},
        "ai": lambda one: _ai(of, one),
        "mcpAuthorization": lambda one: _mcp_rules(of, value, one),
        "mcpGuardrails": lambda one: {"mcp": {"guardrails": {"processors": [_guardrail(of, each) for each in
                                                                             one["processors"]]}}},
    }  # fmt: skip
    of.losses.rest(value, *readers, *elsewhere)
    found: Json = {}
    for name, one in value.items():
        if name not in readers or name in elsewhere:
            continue
        for kind, made in readers[name](one).items():
            # Of `mcp` there may be several parts.
            found[kind] = {**found.get(kind, {}), **made} if kind == "mcp" else made
    return {name: one for name, one in found.items() if one or name in ("tls",)}


def _auth(of: Conversion, policies: SaidMap, value: Any) -> Json:
    found = auth(of, value)
    if not found and not isinstance(value, SaidMap):
        of.losses.add(policies, "backendAuth", "the GitHub Copilot login is that of a person, not of a cluster")
    return {"auth": found}


def _tunnel(of: Conversion, value: SaidMap) -> Json:
    if value.get("policies") and "host" in value["proxy"]:
        # The file has the policies of a proxy beside it, a GatewayBackend has its own.
        proxy = SaidMap("TunnelProxy", value["proxy"].path, value["proxy"].line)
        proxy.update(host=value["proxy"]["host"], policies=value["policies"])
        return {"tunnel": endpoint(of, proxy)}
    of.losses.rest(value.inner("policies"))
    return {"tunnel": endpoint(of, value["proxy"])}


def _tcp(value: SaidMap) -> Json:
    said = value["keepalives"]
    found: Json = {"connectTimeout": value["connectTimeout"]}
    if said.get("enabled", True):
        found["keepalive"] = {name: said[name] for name in _KEEPALIVE if name in said}
    return found


def _health(of: Conversion, value: SaidMap) -> Json:
    found: Json = {}
    if "unhealthyExpression" in value:
        found["unhealthyCondition"] = value["unhealthyExpression"]
    if "eviction" in value:
        said = found["eviction"] = dict(value["eviction"])
        for name in ("healthThreshold", "restoreHealth"):
            if name in said:
                share = Fraction(str(said[name])) * 100
                if share.denominator != 1:
                    of.losses.add(value["eviction"], name, "resources need whole percentages")
                said[name] = int(share)
    return found


def asked(of: Conversion, value: SaidMap) -> Json:
    """Return `extAuth` without conditions."""
    own = ("protocol", "failureMode", "includeRequestHeaders", "includeRequestBody", "cache", "condition")
    of.losses.rest(value, *FIELDS, *own)
    found = endpoint(of, value)
    mode = value.get("failureMode", "deny")
    if isinstance(mode, dict):
        of.losses.add(value, "failureMode", "resources cannot set the status of a refusal")
    elif mode == "allow":
        found["failureMode"] = "FailOpen"
    protocol = value.inner("protocol")
    if "http" in protocol:
        names = {
            "path": "path", "redirect": "redirect", "body": "body", "addRequestHeaders": "addRequestHeaders",
            "includeResponseHeaders": "allowedResponseHeaders", "metadata": "responseMetadata",
        }  # fmt: skip
        found["http"] = renamed(protocol["http"], names, of.losses)
        if "includeRequestHeaders" in value:
            found["http"]["allowedRequestHeaders"] = value["includeRequestHeaders"]
    else:
        names = {"context": "contextExtensions", "metadata": "requestMetadata"}
        found["grpc"] = renamed(protocol.inner("grpc"), names, of.losses)
        if "includeRequestHeaders" in value:
            of.losses.add(value, "includeRequestHeaders", "resources can choose headers only for HTTP services")
    if "includeRequestBody" in value:
        found["forwardBody"] = _body(of, value["includeRequestBody"])
    return found | ({"cache": dict(value["cache"])} if "cache" in value else {})


def _body(of: Conversion, value: SaidMap) -> Json:
    if value.get("allowPartialMessage"):
        of.losses.add(value, "allowPartialMessage")
    of.losses.rest(value, "maxRequestBytes", "allowPartialMessage")
    # The file's default.
    return {"maxSize": value.get("maxRequestBytes", 8192)}


def _guardrail(of: Conversion, value: SaidMap) -> Json:
    own = ("kind", "methods", "failureMode", "metadata", "requestHeaders", "url")
    of.losses.rest(value, *FIELDS, *own)
    found = {"url": value["url"]} if "url" in value else endpoint(of, value)
    found |= spelled_words({name: value[name] for name in ("failureMode", "metadata") if name in value}, "failureMode")
    chosen = value.inner("requestHeaders")
    for name in chosen:
        found[f"{name}RequestHeaders"] = chosen[name]
    methods = {name: word(one) for name, one in value.get("methods", {}).items()}
    return {"remote": found, "methods": methods}


def _mcp_rules(of: Conversion, policies: SaidMap, value: SaidMap) -> Json:
    sections = grouped(value["rules"])
    if len(sections) > 1:
        of.losses.add(policies, "mcpAuthorization", ONE_ACTION)
    return {"mcp": {"authorization": sections[0]}} if sections else {}


def _ai(of: Conversion, value: SaidMap) -> Json:
    found: Json = {}
    for name, one in value.items():
        match name:
            case "defaults" | "overrides":
                found[name] = pairs(one, "field")
            case "transformations" | "finalTransformations":
                found[name] = pairs(one, "field", "expression")
            case "modelAliases":
                found[name] = one
            case "promptCaching":
                found[name] = dict(one)
            case "routes":
                found[name] = {key: word(kind) for key, kind in one.items()}
            case "unsupportedParameters":
                found[name] = word(one)
            case "promptGuard":
                found[name] = prompt_guard(of, one, calls)
            case "prompts":
                found["prompt"] = {side: [dict(each) for each in one[side]] for side in one if one[side]}
            case _:
                of.losses.add(value, name)
    return {"ai": {name: one for name, one in found.items() if one}}
