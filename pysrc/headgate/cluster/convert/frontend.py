"""`frontendPolicies` of the file as `frontend` of a GatewayPolicy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from headgate.cluster.convert.conversion import Conversion, pairs, spelled_words, word
from headgate.cluster.convert.endpoints import FIELDS, endpoint
from headgate.cluster.convert.rules import ONE_ACTION, grouped
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.translate.fragments import Json

_VERSIONS: Final = {"TLS_V1_2": "1.2", "TLS_V1_3": "1.3"}
_TLS: Final = {"handshakeTimeout", "cipherSuites", "keyExchangeGroups"}
_HTTP_WORDS: Final = ("headersWithUnderscores", "pathNormalization", "http1HeaderCase", "requestId")


def frontend(of: Conversion, value: SaidMap) -> Json:
    """Return a section `frontend`, empty if nothing has a form."""
    readers: dict[str, Callable[[Any], Json]] = {
        "http": lambda one: {"http": spelled_words(dict(one), *_HTTP_WORDS)},
        "tls": lambda one: {"tls": _tls(of, one)},
        "tcp": lambda one: _tcp(of, value, one),
        "networkAuthorization": lambda one: _rules(of, value, one),
        "proxyProtocol": lambda one: {"proxyProtocol": _proxied(one)},
        "proxy": lambda one: {"proxyProtocol": _proxied(one)},
        "connect": lambda one: {"connect": {"mode": word(one["mode"])}},
        "accessLog": lambda one: {"accessLog": _log(of, one)},
        "logging": lambda one: {"accessLog": _log(of, one)},
        "tracing": lambda one: {"tracing": _tracing(of, one)},
    }
    of.losses.rest(value, *readers)
    found: Json = {}
    for name, one in value.items():
        if name in readers:
            found |= readers[name](one)
    return {name: one for name, one in found.items() if one}


def _tls(of: Conversion, value: SaidMap) -> Json:
    found: Json = {name: one for name, one in value.items() if name in _TLS}
    for ours, theirs in (("minVersion", "minProtocolVersion"), ("maxVersion", "maxProtocolVersion")):
        if ours in value:
            if value[ours] in _VERSIONS:
                found[theirs] = _VERSIONS[value[ours]]
            else:
                of.losses.add(value, ours, "resources only support TLS 1.2 and 1.3")
    if "alpn" in value:
        found["alpnProtocols"] = [bytes(one).decode("latin-1") for one in value["alpn"]]
    return found


def _tcp(of: Conversion, value: SaidMap, said: SaidMap) -> Json:
    keepalives: SaidMap = said["keepalives"]
    if not keepalives.get("enabled", True):
        of.losses.add(value, "tcp", "keepalive of a resource cannot turn keepalives off")
        return {}
    return {"tcp": {"keepalive": {name: one for name, one in keepalives.items() if name != "enabled"}}}


def _rules(of: Conversion, value: SaidMap, said: SaidMap) -> Json:
    sections = grouped(said["rules"])
    if len(sections) > 1:
        of.losses.add(value, "networkAuthorization", ONE_ACTION)
    return {"networkAuthorization": sections[0]} if sections else {}


def _proxied(value: SaidMap) -> Json:
    return {"version": word(value.get("version", "v2")), "mode": word(value.get("mode", "strict"))}


def _attributes(of: SaidMap | Json, added: str = "add") -> Json:
    found: Json = {"add": pairs(of[added], "name", "expression")} if of.get(added) else {}
    found |= {"remove": list(of["remove"])} if of.get("remove") else {}
    return {"attributes": found} if found else {}


def _log(of: Conversion, value: SaidMap) -> Json:
    of.losses.rest(value, "filter", "add", "remove", "otlp")
    found = _attributes(value) | ({"filter": value["filter"]} if "filter" in value else {})
    if "otlp" in value:
        sent: SaidMap = value["otlp"]
        of.losses.rest(sent, *FIELDS, "filter", "fields", "protocol", "path")
        found["otlp"] = _collector(of, sent) | _attributes(sent.inner("fields"))
    return found


def _collector(of: Conversion, value: SaidMap) -> Json:
    found = endpoint(of, value) | {name: value[name] for name in ("filter", "path") if name in value}
    return found | {"protocol": word(value["protocol"])} if "protocol" in value else found


def _tracing(of: Conversion, value: SaidMap) -> Json:
    found = _collector(of, value) | _attributes(value, "attributes")
    found |= {"resources": pairs(value["resources"], "name", "expression")} if value.get("resources") else {}
    for name in ("randomSampling", "clientSampling"):
        if name in value:
            one = value[name]
            found[name] = str(one).lower() if isinstance(one, bool) else str(one)
    return found
