"""Policies of a route that an HTTPRoute says itself."""

from __future__ import annotations

from typing import Any, Final

from headgate.cluster.convert.conversion import Conversion
from headgate.cluster.convert.endpoints import backend_ref, service_ref
from headgate.cluster.convert.objects import Objects
from headgate.cluster.convert.requests import share
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.convert.transforms import header_edits
from headgate.cluster.snapshot import OWN
from headgate.cluster.translate.fragments import Json
from headgate.document import fields

# Of a rule, and of one of its backends.
OF_RULE: Final = ("requestHeaderModifier", "responseHeaderModifier", "requestRedirect", "urlRewrite", "requestMirror")
OF_BACKEND: Final = ("requestHeaderModifier", "responseHeaderModifier", "requestRedirect")


def filters(of: Conversion, value: SaidMap, *names: str) -> list[Json]:
    """Return the filters for those of some policies that are there."""
    found: list[Json] = []
    for name in names:
        if name not in value:
            continue
        one = value[name]
        match name:
            case "requestHeaderModifier" | "responseHeaderModifier":
                if made := _without_pseudo(of, one):
                    found.append(_filter(name, made))
            case "requestRedirect":
                found.append(_filter(name, _redirect(of, one)))
            case "urlRewrite":
                found.append(_filter(name, _rewrite(of, one)))
            case "requestMirror":
                found += [_filter(name, made) for each in (one if isinstance(one, list) else [one])
                          if (made := _mirror(of, each))]  # fmt: skip
    return found


def _filter(name: str, value: Json) -> Json:
    kind = "URLRewrite" if name == "urlRewrite" else name[:1].upper() + name[1:]
    return {"type": kind, name: value}


def _without_pseudo(of: Conversion, value: SaidMap) -> Json:
    """Return the edits of headers that an HTTPRoute may have: its names are those of header fields alone."""
    found = header_edits(value)
    for action, entries in found.items():
        for one in entries:
            name = one if isinstance(one, str) else one["name"]
            if name.startswith(":"):
                path, line = value.at(action)
                why = f"an HTTPRoute changes no pseudo-header: a transformation sets {name}"
                of.losses.at(f"{path}.{name}", line, why)
        found[action] = [one for one in entries if not (one if isinstance(one, str) else one["name"]).startswith(":")]
    return {action: entries for action, entries in found.items() if entries}


def is_host_choice(value: SaidMap) -> bool:
    """Tell whether a rewrite chooses between the names that there are, which a GatewayPolicy says."""
    return isinstance(value.get("authority"), str)


def _path(value: Json) -> Json:
    if "full" in value:
        return {"type": "ReplaceFullPath", "replaceFullPath": value["full"]}
    return {"type": "ReplacePrefixMatch", "replacePrefixMatch": value["prefix"]}


def _redirect(of: Conversion, value: SaidMap) -> Json:
    found: Json = {"statusCode": value.get("status", 302)}
    if "scheme" in value:
        found["scheme"] = value["scheme"]
    authority = value.get("authority") or {}
    if isinstance(authority, str):
        of.losses.add(value, "authority", "an HTTPRoute can only set a fixed host name, or keep the host")
    elif "full" in authority:
        name, colon, port = authority["full"].rpartition(":")
        if colon and port.isdigit() and "]" not in port:
            found |= {"hostname": name, "port": int(port)}
        else:
            found["hostname"] = authority["full"]
    elif authority:
        names = {"host": "hostname", "port": "port"}
        found |= {theirs: authority[ours] for ours, theirs in names.items() if ours in authority}
    return found | ({"path": _path(value["path"])} if "path" in value else {})


def _rewrite(of: Conversion, value: SaidMap) -> Json:
    found: Json = {}
    authority: Any = value.get("authority") or {}
    if isinstance(authority, str):
        if "path" in value:
            of.losses.add(value, "authority", "an HTTPRoute cannot redirect to both a host name and the path beside it")
    elif authority.keys() - {"full"}:
        of.losses.add(value, "authority", "an HTTPRoute can only replace the whole host name")
    elif authority:
        found["hostname"] = authority["full"]
    return found | ({"path": _path(value["path"])} if "path" in value else {})


def _mirror(of: Conversion, value: SaidMap) -> Json:
    target: SaidMap = value["backend"]
    reference: Json | None = None
    if "service" in target:
        reference = service_ref(of, target)
    elif "backend" in target:
        if target["backend"] in of.backends:
            reference = backend_ref(of, target["backend"])
        else:
            of.losses.add(target, "backend")
    else:
        reference = {"group": OWN, "kind": "GatewayBackend", "name": _host(of.objects, of, target["host"])}
    return {} if reference is None else {"backendRef": reference, "fraction": share(value["percentage"])}


def _host(objects: Objects, of: Conversion, text: str) -> str:
    place = fields.target(text)
    static = {"unixPath": place.unix_path} if place.unix_path else {"host": place.host, "port": place.port}
    return objects.shared("GatewayBackend", of.namespace, f"{of.about}-mirror", {"spec": {"static": static}})
