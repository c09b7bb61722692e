"""Entries of Secrets and ConfigMaps."""

from __future__ import annotations

import re

import pytest
from manifests import Json, entries

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.secrets import decoded, entry, pem, secret

CERTIFICATE = "-----BEGIN CERTIFICATE-----\n..."
BINARY = entries("Secret", "shop/binary") | {"data": {"bytes": "/w==", "text": "*"}}
SNAPSHOT = Snapshot.of([
    entries("Secret", "shop/key", Authorization="secret-1", other="secret-2", **{"ca.crt": CERTIFICATE}), BINARY,
    entries("ConfigMap", "shop/ca", **{"ca.crt": "\n" + CERTIFICATE, "path": "/etc/passwd"}), entries("Secret", "store/far", a="b"),
])  # fmt: skip


def test_entries_are_texts_and_have_a_default() -> None:
    assert secret(SNAPSHOT, "shop", {"name": "key"})["other"] == "secret-2"
    assert entry(SNAPSHOT, "shop", {"name": "key"}, "Authorization") == "secret-1"
    assert entry(SNAPSHOT, "shop", {"name": "key", "key": "other", "group": "", "kind": ""}, "Authorization") == "secret-2"
    assert pem(SNAPSHOT, "shop", {"name": "ca", "kind": "ConfigMap"}, "ca.crt") == CERTIFICATE
    assert pem(SNAPSHOT, "shop", {"name": "key"}, "ca.crt") == CERTIFICATE


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ({"name": "gone"}, "Secret shop/gone not found"),
        ({"name": "far"}, "Secret shop/far not found"),
        ({"name": "key", "key": "none"}, "Secret shop/key has no none"),
        ({"name": "key", "group": "x.test", "kind": "Vault"}, "Vault key: only Secrets are read"),
        ({"name": "binary"}, "Secret shop/binary: bytes is no text in UTF-8"),
    ],
)
def test_what_cannot_be_read_is_told(reference: Json, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        entry(SNAPSHOT, "shop", reference, "a")
    with pytest.raises(ValueError, match="bytes is no text"):
        decoded(BINARY)


@pytest.mark.parametrize(
    ("reference", "key", "words"),
    [
        ({"name": "gone", "kind": "ConfigMap"}, "ca.crt", "ConfigMap shop/gone not found"),
        ({"name": "ca", "kind": "ConfigMap"}, "tls.crt", "ConfigMap shop/ca has no tls.crt"),
        ({"name": "ca", "kind": "ConfigMap"}, "path", "ConfigMap shop/ca: path is not in PEM"),
    ],
)
def test_a_text_that_is_not_in_pem_would_be_the_name_of_a_file(reference: Json, key: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        pem(SNAPSHOT, "shop", reference, key)
