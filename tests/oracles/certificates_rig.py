"""A Secret with a certificate."""

from __future__ import annotations

import base64

import trustme
from manifests import Json, made

PAIR = trustme.CA().issue_cert("a.test")
OTHER = trustme.CA().issue_cert("a.test")
CHAIN = b"".join(one.bytes() for one in PAIR.cert_chain_pems)
FROM_EDGE = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "edge"}


def secret(name: str = "edge/tls", **data: bytes) -> Json:
    entries = data or {"crt": CHAIN, "key": PAIR.private_key_pem.bytes()}
    return {**made("Secret", name, {}, "v1"), "data": {f"tls.{name}": base64.b64encode(one).decode() for name, one in entries.items()}}
