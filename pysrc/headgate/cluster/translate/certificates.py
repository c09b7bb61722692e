"""Certificates with their keys, from Secrets."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from headgate.cluster.snapshot import GATEWAY, SECRET, GroupKind, ObjectKey, Snapshot
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.grants import permitted

INVALID: Final = "InvalidCertificateRef"
_BEGIN: Final = b"-----BEGIN "


def server_pair(snapshot: Snapshot, namespace: str, reference: Json, holder: GroupKind = GATEWAY) -> Json | Unmet:
    """Return `cert` and `key` of the file's `tls` for a reference of a listener, or why there are none.

    `holder`: the kind of object that the listener stands in, in `namespace`.
    """
    return pair(snapshot, namespace, reference, INVALID, holder)


def pair(
    snapshot: Snapshot, namespace: str, reference: Json, invalid: str, holder: GroupKind = GATEWAY
) -> Json | Unmet:
    """Return a certificate chain and its key as the file has them, or why there are none. `invalid`: the reason for a
    reference that is permitted and leads to no usable Secret.
    """
    target = GroupKind(reference.get("group", ""), reference.get("kind", "Secret"))
    if target != SECRET:
        return Unmet(invalid, f"{target.kind} {reference['name']}: a certificate is a Secret")
    key = ObjectKey(reference.get("namespace") or namespace, reference["name"])
    if not permitted(snapshot, holder, namespace, SECRET, key):
        message = f"Secret {key}: no ReferenceGrant lets {holder.kind}s of {namespace} refer to it"
        return Unmet("RefNotPermitted", message)
    secret = snapshot.find(SECRET, *key)
    if secret is None:
        return Unmet(invalid, f"Secret {key} not found")
    try:
        chain, private = _entry(secret, "tls.crt"), _entry(secret, "tls.key")
        certificates = x509.load_pem_x509_certificates(chain)
        if load_pem_private_key(private, None).public_key() != certificates[0].public_key():
            return Unmet(invalid, f"Secret {key}: tls.key is not the key of tls.crt")
    except KeyError as error:
        return Unmet(invalid, f"Secret {key} has no {error.args[0]}")
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The library's words may quote what stands there.
        return Unmet(invalid, f"Secret {key}: tls.crt and tls.key must be a certificate and its unencrypted key in PEM")
    # Without what some tools write around it: what does not begin with PEM is the name of a file to the file's reader.
    return {"cert": in_pem(certificates), "key": private[private.index(_BEGIN) :].decode()}


def in_pem(certificates: list[x509.Certificate]) -> str:
    """Return certificates in PEM, one after the other."""
    return b"".join(one.public_bytes(Encoding.PEM) for one in certificates).decode()


def _entry(secret: dict[str, Any], name: str) -> bytes:
    """Return an entry of a Secret; raises KeyError without it and ValueError if it is no base64."""
    text = (secret.get("data") or {})[name]
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(name) from None
