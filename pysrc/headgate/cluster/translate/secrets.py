"""Entries of Secrets and ConfigMaps of the namespace of what refers to them. Errors never hold what stands there."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from headgate.cluster.snapshot import CONFIG_MAP, SECRET, Snapshot
from headgate.cluster.translate.fragments import Json

# What begins a text in PEM (RFC 7468 section 2). The file takes another text in its place for the name of a file.
_PEM: Final = "-----BEGIN "


def secret(snapshot: Snapshot, namespace: str, reference: Json) -> dict[str, str]:
    """Return the entries of the Secret that a reference names; raises ValueError without one, or if it is no text."""
    if reference.get("kind") not in (None, "", "Secret"):
        raise ValueError(f"{reference['kind']} {reference['name']}: only Secrets are read")
    found = snapshot.find(SECRET, namespace, reference["name"])
    if found is None:
        raise ValueError(f"Secret {namespace}/{reference['name']} not found")
    return decoded(found)


def decoded(found: Json) -> dict[str, str]:
    """Return the entries of a Secret as texts. Raises ValueError."""
    entries = {}
    for key, value in (found.get("data") or {}).items():
        try:
            entries[key] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            name = f"{found['metadata']['namespace']}/{found['metadata']['name']}"
            raise ValueError(f"Secret {name}: {key} is no text in UTF-8") from None
    return entries


def entry(snapshot: Snapshot, namespace: str, reference: Json, default: str) -> str:
    """Return one entry of a Secret: the reference's `key`, or else the default one. Raises ValueError."""
    key = reference.get("key") or default
    try:
        return secret(snapshot, namespace, reference)[key]
    except KeyError:
        raise ValueError(f"Secret {namespace}/{reference['name']} has no {key}") from None


def pem(snapshot: Snapshot, namespace: str, reference: Json, key: str) -> str:
    """Return an entry in PEM of a Secret or, if the reference says so, of a ConfigMap. Raises ValueError."""
    about = f"{reference.get('kind') or 'Secret'} {namespace}/{reference['name']}"
    if reference.get("kind") == "ConfigMap":
        found = snapshot.find(CONFIG_MAP, namespace, reference["name"])
        if found is None:
            raise ValueError(f"{about} not found")
        entries = found.get("data") or {}
    else:
        entries = secret(snapshot, namespace, reference)
    if key not in entries:
        raise ValueError(f"{about} has no {key}")
    # Some tools write in front of it what it says.
    _, begin, rest = str(entries[key]).partition(_PEM)
    if not begin:
        raise ValueError(f"{about}: {key} is not in PEM")
    return begin + rest
