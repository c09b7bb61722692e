"""Policies of requests as `traffic` of GatewayPolicies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Final

from headgate.cluster.convert.backends import host_backend
from headgate.cluster.convert.calls import asked
from headgate.cluster.convert.conversion import Conversion, pairs, renamed, spelled_words, word
from headgate.cluster.convert.endpoints import FIELDS, endpoint
from headgate.cluster.convert.rules import grouped
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.convert.transforms import header_edits, transformation
from headgate.cluster.snapshot import OWN
from headgate.cluster.translate.fragments import Json
from headgate.document.fields import duration_ms, duration_ns

_UNITS: Final = {10**9: "Seconds", 60 * 10**9: "Minutes", 3600 * 10**9: "Hours"}
_CORS: Final = ("allowOrigins", "allowMethods", "allowHeaders", "exposeHeaders", "allowCredentials")


def traffic(of: Conversion, value: SaidMap, *elsewhere: str) -> list[Json]:
    """Return sections `traffic` that say the policies of a map together: rules of one section have one action.
    `elsewhere`: fields that are converted by somebody else."""
    readers: dict[str, Callable[[Any], Json]] = {
        "jwtAuth": lambda one: {"jwtAuthentication": _tokens(of, one)},
        "mcpAuthentication": lambda one: _mcp_tokens(of, value, one),
        "apiKey": lambda one: {"apiKeyAuthentication": _keys(of, one)},
        "basicAuth": lambda one: {"basicAuthentication": _passwords(of, one)},
        "cors": lambda one: {"cors": _cors(of, one)},
        "csrf": lambda one: {"csrf": dict(one)},
        "delay": lambda one: {"delay": dict(one)},
        "buffer": lambda one: {"buffer": {side: spelled_words(dict(one[side]), "failureMode") for side in one}},
        "extAuthz": lambda one: {"extAuth": _conditional(one, lambda each: asked(of, each))},
        "extProc": lambda one: {"extProc": _conditional(one, lambda each: _processed(of, each))},
        "transformations": lambda one: {"transformation": _conditional(one, lambda each: transformation(of, each))},
        "directResponse": lambda one: {"directResponse": _conditional(one, lambda each: _direct(of, each))},
        "localRateLimit": lambda one: {"rateLimit": _limits(of, one)},
        "remoteRateLimit": lambda one: {"rateLimit": _conditional(one, lambda each: {"global": _shared(of, each)})
                                        if "conditional" in one else {"global": _shared(of, one)}},
        "retry": lambda one: {"retry": _retry(of, one)},
        "timeout": lambda one: _timeout(of, one),
        "requestHeaderModifier": lambda one: {"headerModifiers": {"request": header_edits(one)}},
        "responseHeaderModifier": lambda one: {"headerModifiers": {"response": header_edits(one)}},
        "urlRewrite": lambda one: _host_rewrite(of, one),
    }  # fmt: skip
    of.losses.rest(value, *readers, "authorization", *elsewhere)
    found: Json = {}
    for name, one in value.items():
        if name not in readers or name in elsewhere:
            continue
        for kind, made in readers[name](one).items():
            if kind == "rateLimit" and kind in found and "conditional" in (made.keys() | found[kind].keys()):
                of.losses.add(value, name, "limits with conditions must be either all local or all global")
                continue
            found[kind] = found.get(kind, {}) | made if kind in ("rateLimit", "headerModifiers") else made
    sections = [found] if found else []
    if "authorization" not in elsewhere:
        for index, rules in enumerate(grouped(value.get("authorization", {}).get("rules", []))):
            if index == 0 and found:
                found["authorization"] = rules
            else:
                sections.append({"authorization": rules})
    return sections


def _conditional(value: SaidMap, plain: Callable[[SaidMap], Json]) -> Json:
    if "conditional" not in value:
        return plain(value)
    entries = [
        ({"condition": one["condition"]} if "condition" in one else {}) | {"policy": plain(one)}
        for one in value["conditional"]
    ]
    return {"conditional": entries}


def _located(value: SaidMap, name: str = "location") -> Json:
    return {"location": dict(value[name])} if name in value else {}


def _mode(value: SaidMap) -> Json:
    return {"mode": word(value["mode"])} if "mode" in value else {}


def _tokens(of: Conversion, value: SaidMap) -> Json:
    providers = [_provider(of, one) for one in value.get("providers", [value])]
    return {**_mode(value), "providers": providers, **_located(value)}


def _provider(of: Conversion, value: SaidMap) -> Json:
    of.losses.rest(value, "issuer", "audiences", "jwks", "mode", "location", "providers")
    found = {"issuer": value["issuer"]} | ({"audiences": value["audiences"]} if value.get("audiences") else {})
    source = value["jwks"]
    if not isinstance(source, SaidMap) or "file" in source:
        return found | {"jwks": {"inline": of.text(source)}}
    if "host" in source:
        # A URL is asked for by itself, and a place is a backend, also here.
        made = host_backend(of, source["host"], source.inner("policies"), f"{of.about}-keys")
        place: Json = {"backendRef": {"group": OWN, "kind": "GatewayBackend", "name": made}}
    else:
        place = {"url": source["url"]} if "url" in source else endpoint(of, source)
    if "backendRef" in place:
        place["jwksPath"] = source.get("path", "/")
    if "cacheDuration" in source:
        place["cacheDuration"] = source["cacheDuration"]
    return found | {"jwks": {"remote": place}}


def _mcp_tokens(of: Conversion, policies: SaidMap, value: SaidMap) -> Json:
    """Return who is let in, with the metadata that clients of MCP look for."""
    if "jwtAuth" in policies:
        of.losses.add(policies, "mcpAuthentication", "a GatewayPolicy cannot have both jwtAuth and mcpAuthentication")
        return {}
    own = ("provider", "resourceMetadata", "clientId", "authorizationLocation")
    of.losses.rest(value, "issuer", "audiences", "jwks", "mode", *own)
    if value.get("mode", "strict") != "strict":
        of.losses.add(value, "mode", "a GatewayPolicy that serves metadata must have the mode Strict")
    if "jwks" not in value:
        of.losses.at(value.path, value.line, "a GatewayPolicy must set the location of keys")
        return {}
    said: Json = {name: value[name] for name in ("resourceMetadata", "clientId") if name in value}
    if "provider" in value:
        [kind] = value["provider"]
        said["provider"] = word(kind)
    known = SaidMap(value.shape, value.path, value.line)
    known.update({name: value[name] for name in ("issuer", "audiences", "jwks") if name in value})
    found = {"mode": "Strict", "providers": [_provider(of, known)], "mcp": said}
    return {"jwtAuthentication": found | _located(value, "authorizationLocation")}


def _keys(of: Conversion, value: SaidMap) -> Json:
    of.losses.rest(value, "keys", "mode", "location")
    entries = {}
    for index, one in enumerate(value.get("keys", ())):
        of.losses.rest(one, "key", "keyHash", "metadata")
        # In the order of the file.
        entries[f"key-{index:03d}"] = json.dumps(dict(one)) if one.keys() - {"key"} else one["key"]
    name = of.objects.secret(of.namespace, f"{of.about}-keys", entries)
    return {**_mode(value), "secretRef": {"name": name}, **_located(value)}


def _passwords(of: Conversion, value: SaidMap) -> Json:
    name = of.objects.secret(of.namespace, f"{of.about}-passwords", {".htaccess": of.text(value["htpasswd"])})
    found = {**_mode(value), "secretRef": {"name": name, "key": ".htaccess"}}
    found |= _located(value, "authorizationLocation")
    return found | ({"realm": value["realm"]} if "realm" in value else {})


def _cors(of: Conversion, value: SaidMap) -> Json:
    found: Json = {name: value[name] for name in _CORS if name in value and value[name] != []}
    if "maxAge" not in value:
        of.losses.at(value.path, value.line, "resources always set maxAge (default 5 s)")
    elif duration_ms(value["maxAge"]) % 1000 or not duration_ms(value["maxAge"]):
        of.losses.add(value, "maxAge", "resources need whole seconds, at least 1")
    else:
        found["maxAge"] = duration_ms(value["maxAge"]) // 1000
    return found


def _processed(of: Conversion, value: SaidMap) -> Json:
    same = ("requestAttributes", "responseAttributes", "metadataContext")
    of.losses.rest(value, *FIELDS, *same, "failureMode", "processingOptions", "condition")
    found = endpoint(of, value) | {name: value[name] for name in same if name in value}
    found |= {"failureMode": word(value["failureMode"])} if "failureMode" in value else {}
    # A resource has defaults of its own where the file leaves a mode out.
    modes = {name: word(one) if isinstance(one, str) else one for name, one in value.inner("processingOptions").items()}
    return found | ({"processingOptions": modes} if modes else {})


def _direct(of: Conversion, value: SaidMap) -> Json:
    found: Json = {name: value[name] for name in ("status", "bodyExpression") if name in value}
    body = value.get("body")
    if isinstance(body, list):
        try:
            body = bytes(body).decode()
        except UnicodeDecodeError:
            of.losses.add(value, "body", "resources can only contain UTF-8 text")
            body = None
    found |= {"body": body} if body else {}
    return found | ({"headers": pairs(value["headers"])} if value.get("headers") else {})


def _limits(of: Conversion, value: Any) -> Json:
    if isinstance(value, SaidMap):
        return _conditional(value, lambda one: {"local": list(_window(of, one))})
    return {"local": [each for one in value for each in _window(of, one)]}


def _window(of: Conversion, value: SaidMap) -> Iterator[Json]:
    """Yield the limit, nothing (and a loss) for a bucket that no window has."""
    if value.shape in ("LocalRateLimitWindow", "LocalRateLimitWindowWithCondition"):
        yield spelled_words({name: said for name, said in value.items() if name != "condition"}, "unit")
        return
    unit = _UNITS.get(duration_ns(value["fillInterval"]))
    fill, most = value.get("tokensPerFill", 0), value.get("maxTokens", 0)
    if unit is None or not 0 < fill <= most:
        why = "a resource counts by second, minute or hour, and holds what comes in one of them at least"
        of.losses.at(value.path, value.line, why)
        return
    burst = {"burst": most - fill} if most > fill else {}
    yield {value.get("type", "requests"): fill, "unit": unit, **burst}


def _shared(of: Conversion, value: SaidMap) -> Json:
    of.losses.rest(value, *FIELDS, "domain", "descriptors", "failureMode", "condition")
    found = endpoint(of, value) | {"domain": value["domain"]}
    found |= {"failureMode": word(value["failureMode"])} if "failureMode" in value else {}
    found["descriptors"] = [
        {"entries": [{"name": each["key"], "expression": each["value"]} for each in one["entries"]]}
        | ({"unit": word(one["type"])} if "type" in one else {})
        | {name: one[name] for name in ("cost", "limitOverride") if name in one}
        for one in value["descriptors"]
    ]
    return found


def _retry(of: Conversion, value: SaidMap) -> Json:
    names = ("attempts", "backoff", "codes", "precondition", "condition")
    found = renamed(value, {name: name for name in names}, of.losses)
    return {name: one for name, one in found.items() if one != []}


def _timeout(of: Conversion, value: SaidMap) -> Json:
    if "backendRequestTimeout" in value:
        of.losses.add(value, "backendRequestTimeout", "GatewayPolicy has no such field: use a rule of an HTTPRoute")
    return {"timeouts": {"request": value["requestTimeout"]}} if "requestTimeout" in value else {}


def _host_rewrite(of: Conversion, value: SaidMap) -> Json:
    if isinstance(value.get("authority"), str) and "path" not in value:
        return {"hostRewrite": {"mode": word(value["authority"])}}
    for name in value:
        of.losses.add(value, name, "a GatewayPolicy only has auto and none: use a filter of an HTTPRoute rule")
    return {}


def share(value: float) -> Json:
    """Return 0..1 as a fraction of whole numbers."""
    found = Fraction(str(value))
    return {"numerator": found.numerator, "denominator": found.denominator}
