"""Certificates of listeners."""

from __future__ import annotations

import pytest
from certificates_rig import CHAIN, FROM_EDGE, OTHER, PAIR, secret
from manifests import Json, grant

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.certificates import server_pair
from headgate.cluster.translate.conditions import Unmet


def test_a_secret_gives_the_pair_as_text() -> None:
    found = server_pair(Snapshot.of([secret()]), "edge", {"name": "tls"})
    assert found == {"cert": CHAIN.decode(), "key": PAIR.private_key_pem.bytes().decode()}


@pytest.mark.parametrize(
    ("document", "reference", "reason", "words"),
    [
        (secret(), {"name": "gone"}, "InvalidCertificateRef", "Secret edge/gone not found"),
        (secret(), {"name": "tls", "kind": "ConfigMap"}, "InvalidCertificateRef", "a certificate is a Secret"),
        (secret(crt=CHAIN), {"name": "tls"}, "InvalidCertificateRef", "Secret edge/tls has no tls.key"),
        (secret(crt=b"x", key=b"y"), {"name": "tls"}, "InvalidCertificateRef", "must be a certificate and its unencrypted key"),
        (secret(crt=CHAIN, key=OTHER.private_key_pem.bytes()), {"name": "tls"}, "InvalidCertificateRef", "tls.key is not the key of tls.crt"),
        (secret("shop/tls"), {"name": "tls", "namespace": "shop"}, "RefNotPermitted", "no ReferenceGrant"),
    ],
)
def test_secrets_that_cannot_be_used(document: Json, reference: Json, reason: str, words: str) -> None:
    found = server_pair(Snapshot.of([document]), "edge", reference)
    assert isinstance(found, Unmet)
    assert (found.reason, words in found.message) == (reason, True)


def test_what_tools_write_around_a_certificate_is_left_out() -> None:
    """The file takes a text that does not begin with PEM for the name of a file."""
    words = b"Bag Attributes\n    friendlyName: x\n"
    noisy = secret(crt=words + CHAIN + words, key=words + PAIR.private_key_pem.bytes())
    found = server_pair(Snapshot.of([noisy]), "edge", {"name": "tls"})
    assert found == {"cert": CHAIN.decode(), "key": PAIR.private_key_pem.bytes().decode()}


def test_what_is_no_base64_is_no_certificate() -> None:
    broken = secret()
    broken["data"]["tls.crt"] = "?"
    assert isinstance(server_pair(Snapshot.of([broken]), "edge", {"name": "tls"}), Unmet)


def test_a_grant_lets_a_gateway_have_a_secret_of_another_namespace() -> None:
    allowed = grant("shop/g", FROM_EDGE, {"group": "", "kind": "Secret"})
    found = server_pair(Snapshot.of([secret("shop/tls"), allowed]), "edge", {"name": "tls", "namespace": "shop"})
    assert not isinstance(found, Unmet)
