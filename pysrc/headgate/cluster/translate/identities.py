"""Who may come in: tokens, API keys and passwords of a GatewayPolicy as policies of the file.

A part that cannot be said raises a ValueError. An entry that cannot be used is left out and told: the others hold.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import CONFIG_MAP, SECRET, GroupKind, Snapshot
from headgate.cluster.translate.called_services import ServiceReader
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.secrets import decoded, entry, secret
from headgate.cluster.translate.selectors import selects

_HASH: Final = re.compile(r"sha256:[0-9a-fA-F]{64}")
_HTPASSWD: Final = ".htaccess"


class _Source(NamedTuple):
    """An object with keys: in a Secret they may be plain."""

    about: str
    entries: dict[str, str]
    plain: bool


def tokens(value: Json, services: ServiceReader) -> Json:
    """Return `jwtAuth`, or `mcpAuthentication` where OAuth metadata is to be served, too."""
    providers = [
        _said(one, "issuer", "audiences")
        | {"jwks": one["jwks"]["inline"] if "inline" in one["jwks"] else _remote_keys(one["jwks"]["remote"], services)}
        for one in value["providers"]
    ]
    if "mcp" not in value:
        return {"jwtAuth": {"providers": providers, **_said(value, "mode", "location")}}
    location = {"authorizationLocation": value["location"]} if "location" in value else {}
    return {"mcpAuthentication": providers[0] | _of_clients(value["mcp"]) | location | _said(value, "mode")}


def mcp_authentication(snapshot: Snapshot, namespace: str, value: Json, services: ServiceReader) -> Json:
    """Return `mcpAuthentication` for the older place of the same, at calls to MCP servers."""
    if "issuer" not in value:
        raise ValueError("issuer is required: metadata is served for one")
    found = _said(value, "issuer", "audiences", "mode") | {"jwks": _remote_keys(value["jwks"], services)}
    if "clientSecretRef" in value:
        found["clientSecret"] = entry(snapshot, namespace, value["clientSecretRef"], "clientSecret").rstrip("\r\n")
    return found | _of_clients(value)


def _of_clients(value: Json) -> Json:
    """Return what clients of MCP are told."""
    found = _said(value, "resourceMetadata", "clientId")
    if "provider" in value:
        kind = value["provider"]
        found["provider"] = {kind[0].lower() + kind[1:]: {}}
    return found


def _remote_keys(value: Json, services: ServiceReader) -> Json:
    """Return where the data plane fetches keys."""
    kept = _said(value, "cacheDuration")
    if "url" in value:
        return {"url": value["url"]} | kept
    path = value["jwksPath"]
    return services.place({"backendRef": value["backendRef"]}) | {"path": path if path[0] == "/" else f"/{path}"} | kept


def passwords(snapshot: Snapshot, namespace: str, value: Json) -> Json:
    """Return `basicAuth`."""
    lines = value.get("users")
    text = entry(snapshot, namespace, value["secretRef"], _HTPASSWD) if lines is None else "\n".join(lines)
    location = {"authorizationLocation": value["location"]} if "location" in value else {}
    return {"htpasswd": text, **_said(value, "mode", "realm"), **location}


def api_keys(snapshot: Snapshot, namespace: str, value: Json, notes: list[str]) -> Json:
    """Return `apiKey`; adds to `notes` which entries are not used. Of two that are the same key the first counts."""
    found: dict[str, Json] = {}
    for source in _sources(snapshot, namespace, value, notes):
        for name, text in sorted(source.entries.items()):
            about = f"{source.about}: {name}"
            try:
                digest, one = _key(text, source.plain)
            except ValueError as error:
                notes.append(f"{about} is not used: {error}")
                continue
            if digest in found:
                notes.append(f"{about} is not used: it is a key that is there already")
                continue
            found[digest] = one
    return {"keys": list(found.values()), **_said(value, "mode", "location")}


def _said(value: Json, *names: str) -> Json:
    return {name: value[name] for name in names if name in value}


def _sources(snapshot: Snapshot, namespace: str, value: Json, notes: list[str]) -> Iterator[_Source]:
    """Return where keys are, by the names of the objects."""
    if "secretRef" in value:
        name = value["secretRef"]["name"]
        yield _Source(f"Secret {namespace}/{name}", secret(snapshot, namespace, value["secretRef"]), plain=True)
        return
    kind = SECRET if "secretSelector" in value else CONFIG_MAP
    selector = value["secretSelector"] if kind == SECRET else value["configMapSelector"]
    chosen = list(_chosen(snapshot, namespace, kind, selector))
    if not chosen:
        notes.append(f"no {kind.kind} of {namespace} has the labels of the selector: there is no key")
    for one in chosen:
        about = f"{kind.kind} {namespace}/{one['metadata']['name']}"
        try:
            yield _Source(about, decoded(one) if kind == SECRET else one.get("data") or {}, plain=kind == SECRET)
        except ValueError as error:
            notes.append(f"{error}: none of its keys are used")


def _chosen(snapshot: Snapshot, namespace: str, kind: GroupKind, selector: Json) -> Iterator[Json]:
    for key, one in sorted(snapshot.kinds.get(kind, {}).items()):
        if key.namespace == namespace and selects(selector, one["metadata"].get("labels") or {}):
            yield one


def _key(text: str, plain: bool) -> tuple[str, Json]:
    """Return the digest of a key in hexadecimal digits, and the key as the file has it; ValueError if it is none."""
    # A line that ends a file is no part of a key.
    text = text.rstrip("\r\n")
    if not text.lstrip().startswith("{"):
        if not plain:
            raise ValueError("in a ConfigMap it must be JSON with keyHash")
        return _plain(text), {"key": text}
    try:
        said: Any = json.loads(text)
    except ValueError:
        raise ValueError("it is no JSON") from None
    metadata = said.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise ValueError("metadata is no object")
    more = {} if metadata is None else {"metadata": metadata}
    key, hashed = said.get("key"), said.get("keyHash")
    if (key is None) == (hashed is None) or not isinstance(key or hashed, str):
        raise ValueError("it needs exactly one of key and keyHash")
    if hashed is not None:
        if not _HASH.fullmatch(hashed):
            raise ValueError("keyHash is not sha256: and 64 hexadecimal digits")
        return hashed.removeprefix("sha256:").lower(), {"keyHash": hashed, **more}
    if not plain:
        raise ValueError("in a ConfigMap there may be keyHash only")
    return _plain(key), {"key": key, **more}


def _plain(key: str) -> str:
    if not key:
        raise ValueError("it is empty")
    return hashlib.sha256(key.encode()).hexdigest()
