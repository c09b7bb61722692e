"""Tokens, API keys and passwords of policies."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest
from manifests import Json, entries

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.identities import api_keys, passwords, tokens

HASH = "sha256:" + hashlib.sha256(b"k1").hexdigest()
HEADER = {"header": {"name": "x-key"}}


def labelled(document: Json, **labels: str) -> Json:
    document["metadata"]["labels"] = labels
    return document


SNAPSHOT = Snapshot.of([
    entries("Secret", "shop/plain", app="k1\n", other="k2"),
    labelled(entries("Secret", "shop/b", x=json.dumps({"key": "k3", "metadata": {"team": "blue"}})), keys="yes"),
    labelled(entries("Secret", "shop/a", y=json.dumps({"keyHash": HASH}), z="k1"), keys="yes"),
    labelled(entries("Secret", "store/c", w="k9"), keys="yes"),
    labelled(entries("ConfigMap", "shop/m", good=json.dumps({"keyHash": HASH.upper().replace("SHA256", "sha256")}), raw="k1", secret='{"key": "k"}'), maps="yes"),
    entries("Secret", "shop/bad", empty="", broken="{", two=json.dumps({"key": "a", "keyHash": HASH}), short=json.dumps({"keyHash": "sha256:1"}),
            number=json.dumps({"key": 1}), meta=json.dumps({"key": "k", "metadata": []}), good="k"),
    labelled(entries("Secret", "shop/bytes") | {"data": {"x": "/w=="}}, odd="yes"),
    entries("Secret", "shop/users", **{".htaccess": "ann:x", "other": "bob:y"}),
])  # fmt: skip


def keys(**value: Any) -> tuple[Json, list[str]]:
    notes: list[str] = []
    return api_keys(SNAPSHOT, "shop", value, notes), notes


def test_keys_of_one_secret() -> None:
    assert keys(secretRef={"name": "plain"}, mode="Optional", location=HEADER) == (
        {"keys": [{"key": "k1"}, {"key": "k2"}], "mode": "Optional", "location": HEADER}, [],
    )  # fmt: skip


def test_keys_of_secrets_with_labels_are_those_of_the_own_namespace() -> None:
    found, notes = keys(secretSelector={"matchLabels": {"keys": "yes"}})
    assert found == {"keys": [{"keyHash": HASH}, {"key": "k3", "metadata": {"team": "blue"}}]}
    # The plain form of a key that is there by its hash.
    assert notes == ["Secret shop/a: z is not used: it is a key that is there already"]


def test_a_config_map_has_hashes_only() -> None:
    found, notes = keys(configMapSelector={"matchLabels": {"maps": "yes"}})
    assert [one["keyHash"].lower() for one in found["keys"]] == [HASH]
    assert notes == [
        "ConfigMap shop/m: raw is not used: in a ConfigMap it must be JSON with keyHash",
        "ConfigMap shop/m: secret is not used: in a ConfigMap there may be keyHash only",
    ]


def test_entries_that_are_no_keys_leave_the_others() -> None:
    found, notes = keys(secretRef={"name": "bad"})
    assert found == {"keys": [{"key": "k"}]}
    assert [one.removeprefix("Secret shop/bad: ") for one in notes] == [
        "broken is not used: it is no JSON",
        "empty is not used: it is empty",
        "meta is not used: metadata is no object",
        "number is not used: it needs exactly one of key and keyHash",
        "short is not used: keyHash is not sha256: and 64 hexadecimal digits",
        "two is not used: it needs exactly one of key and keyHash",
    ]


def test_without_a_key_nobody_has_one() -> None:
    assert keys(secretSelector={"matchLabels": {"keys": "none"}}) == ({"keys": []}, ["no Secret of shop has the labels of the selector: there is no key"])
    found, notes = keys(secretSelector={"matchLabels": {"odd": "yes"}})
    assert (found, "x is no text in UTF-8: none of its keys are used" in notes[0]) == ({"keys": []}, True)


def test_passwords() -> None:
    assert passwords(SNAPSHOT, "shop", {"users": ["ann:x", "bob:y"], "mode": "Strict", "location": HEADER}) == {
        "htpasswd": "ann:x\nbob:y", "mode": "Strict", "authorizationLocation": HEADER,
    }  # fmt: skip
    assert passwords(SNAPSHOT, "shop", {"secretRef": {"name": "users"}, "realm": "shop"}) == {"htpasswd": "ann:x", "realm": "shop"}
    assert passwords(SNAPSHOT, "shop", {"secretRef": {"name": "users", "key": "other"}}) == {"htpasswd": "bob:y"}
    with pytest.raises(ValueError, match=r"Secret shop/plain has no \.htaccess"):
        passwords(SNAPSHOT, "shop", {"secretRef": {"name": "plain"}})


def test_tokens() -> None:
    provider = {"issuer": "i", "jwks": {"inline": "{}"}}
    assert tokens({"mode": "Permissive", "providers": [provider, {**provider, "audiences": ["a"]}], "location": HEADER}) == {
        "providers": [{"issuer": "i", "jwks": "{}"}, {"issuer": "i", "audiences": ["a"], "jwks": "{}"}], "mode": "Permissive", "location": HEADER,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"providers": [{"issuer": "i", "jwks": {"remote": {"url": "https://a.test"}}}]}, "provider i: jwks.remote is not supported yet"),
        ({"providers": [], "mcp": {}}, "mcp is not supported yet"),
    ],
)
def test_tokens_that_cannot_be_checked(value: Json, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        tokens(value)
