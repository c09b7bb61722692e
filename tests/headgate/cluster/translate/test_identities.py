"""Tokens, API keys and passwords of policies."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest
from manifests import Json, entries, gateway_backend, own, service, to
from tests.end_to_end.identity_rig import JWKS

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.called_services import ServiceReader
from headgate.cluster.translate.checked import faults_of_policy
from headgate.cluster.translate.identities import api_keys, mcp_authentication, passwords, tokens

HASH = "sha256:" + hashlib.sha256(b"k1").hexdigest()
HEADER = {"header": {"name": "x-key"}}


def labelled(document: Json, **labels: str) -> Json:
    document["metadata"]["labels"] = labels
    return document


SNAPSHOT = Snapshot.of([
    service("shop/idp"), gateway_backend("shop/away"), entries("Secret", "shop/app", clientSecret="s3\n"),
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


def read(value: Json) -> Json:
    [(kind, found)] = tokens(value, ServiceReader(SNAPSHOT, "shop")).items()
    assert faults_of_policy(kind, found) == ()
    return {kind: found}


INLINE = {"issuer": "https://i.test", "jwks": {"inline": JWKS}}


def remote(**jwks: Any) -> Json:
    return {"issuer": "https://i.test", "jwks": {"remote": jwks}}


def test_tokens() -> None:
    given = {"mode": "Permissive", "providers": [INLINE, {**INLINE, "audiences": ["a"]}], "location": HEADER}
    provider = {"issuer": "https://i.test", "jwks": JWKS}
    assert read(given) == {
        "jwtAuth": {"providers": [provider, {**provider, "audiences": ["a"]}], "mode": "Permissive", "location": HEADER},
    }


@pytest.mark.parametrize(
    ("jwks", "ours"),
    [
        ({"url": "https://i.test/keys", "cacheDuration": "10m"}, {"url": "https://i.test/keys", "cacheDuration": "10m"}),
        (
            {"backendRef": to("idp"), "jwksPath": "keys"},
            {"service": {"name": "shop/idp.shop.svc.cluster.local", "port": 8080}, "path": "/keys"},
        ),
        ({"backendRef": own("away"), "jwksPath": "/keys"}, {"backend": "shop/away", "path": "/keys"}),
    ],
)
def test_keys_that_the_data_plane_fetches(jwks: Json, ours: Json) -> None:
    assert read({"providers": [remote(**jwks)]}) == {"jwtAuth": {"providers": [{"issuer": "https://i.test", "jwks": ours}]}}


def test_tokens_of_mcp_clients() -> None:
    mcp = {"provider": "Keycloak", "resourceMetadata": {"scopes_supported": ["a"]}, "clientId": "c"}
    assert read({"mode": "Strict", "providers": [INLINE], "location": HEADER, "mcp": mcp}) == {
        "mcpAuthentication": {
            "issuer": "https://i.test", "jwks": JWKS, "provider": {"keycloak": {}}, "clientId": "c", "mode": "Strict",
            "resourceMetadata": {"scopes_supported": ["a"]}, "authorizationLocation": HEADER,
        }
    }  # fmt: skip


def test_the_older_place_of_tokens_of_mcp_clients() -> None:
    services = ServiceReader(SNAPSHOT, "shop")
    value = {"issuer": "https://login.microsoftonline.com/t/v2.0", "provider": "Entra", "clientId": "c", "clientSecretRef": {"name": "app"}, "mode": "Optional"}
    found = mcp_authentication(SNAPSHOT, "shop", value | {"jwks": {"backendRef": to("idp"), "jwksPath": "/keys"}}, services)
    assert found == {
        "issuer": "https://login.microsoftonline.com/t/v2.0", "provider": {"entra": {}}, "clientId": "c", "clientSecret": "s3", "mode": "Optional",
        "jwks": {"service": {"name": "shop/idp.shop.svc.cluster.local", "port": 8080}, "path": "/keys"},
    }  # fmt: skip
    assert faults_of_policy("mcpAuthentication", found) == ()
    assert services.used == {("shop", "idp")}
    with pytest.raises(ValueError, match="issuer is required"):
        mcp_authentication(SNAPSHOT, "shop", {"jwks": {"url": "https://i.test"}}, services)


def test_keys_of_a_service_that_there_is_not() -> None:
    with pytest.raises(ValueError, match=re.escape("Service shop/gone not found")):
        tokens({"providers": [remote(backendRef=to("gone"), jwksPath="/")]}, ServiceReader(SNAPSHOT, "shop"))
