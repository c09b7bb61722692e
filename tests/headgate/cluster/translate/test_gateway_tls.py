"""`spec.tls` of a Gateway: certificates of its clients, and its own at backends."""

from __future__ import annotations

from typing import Any

import pytest
import trustme
from certificates_rig import CHAIN, FROM_EDGE, PAIR, secret
from manifests import (
    Json,
    entries,
    gateway,
    gateway_backend,
    gateway_class,
    grant,
    http_route,
    listener,
    own,
)

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.fragments import Fragment
from headgate.cluster.translate.gateway_tls import client_trust, conditions, own_certificate, with_certificate
from headgate.cluster.translate.listeners import ListenerState, listeners

ROOT = trustme.CA().cert_pem.bytes().decode()
OTHER_ROOT = trustme.CA().cert_pem.bytes().decode()
TLS = {"tls": {"certificateRefs": [{"name": "tls"}]}}
FINE = {"Accepted": (True, "Accepted"), "Conflicted": (False, "NoConflicts"), "ResolvedRefs": (True, "ResolvedRefs")}


def authority(name: str = "clients", kind: str = "ConfigMap", **more: str) -> Json:
    return {"group": "", "kind": kind, "name": name, **more}


def validation(*references: Json, **more: str) -> Json:
    return {"validation": {"caCertificateRefs": list(references or (authority(),)), **more}}


def demanding(default: Json, *per_port: Json, at: tuple[Json, ...] = ()) -> Json:
    found = gateway(*(at or (listener("s", 443, "HTTPS", **TLS),)))
    found["spec"]["tls"] = {"frontend": {"default": default, "perPort": list(per_port)}}
    return found


def known(*more: Json) -> Snapshot:
    return Snapshot.of([secret(), entries("ConfigMap", "edge/clients", **{"ca.crt": f"# ours\n{ROOT}"}), *more])


def said(state: ListenerState) -> dict[str, tuple[bool, str]]:
    return {one.type: (one.holds, one.reason) for one in state.conditions()}


def told(owner: Json, certificate: Json | Unmet | None = None) -> dict[str, tuple[bool, str]]:
    return {one.type: (one.holds, one.reason) for one in conditions(owner, certificate)}


def test_clients_of_https_need_a_certificate() -> None:
    owner = demanding(validation(), at=(listener("plain"), listener("s", 443, "HTTPS", **TLS)))
    plain, secure = listeners(known(), owner)
    assert plain.tls is None
    assert (said(plain), said(secure)) == (FINE, FINE)
    assert secure.tls is not None
    assert (secure.tls["root"], "clientValidation" in secure.tls) == (ROOT, False)
    assert told(owner) == {}


def test_strangers_are_admitted_where_that_is_said() -> None:
    owner = demanding(validation(mode="AllowInsecureFallback"))
    (only,) = listeners(known(), owner)
    assert only.tls is not None
    assert (only.tls["root"], only.tls["clientValidation"]) == (ROOT, "allowInsecureFallback")
    assert told(owner) == {"InsecureFrontendValidationMode": (True, "ConfigurationChanged")}


def test_what_is_said_of_a_port_counts_alone() -> None:
    owner = demanding(
        validation(mode="AllowInsecureFallback"),
        {"port": 8443, "tls": validation(authority("others"))},
        {"port": 9443, "tls": {}},
    )
    snapshot = known(entries("ConfigMap", "edge/others", **{"ca.crt": OTHER_ROOT}))
    forms = [client_trust(snapshot, owner, port) for port in (443, 8443, 9443)]
    assert [None if one is None else one.form for one in forms] == [
        {"root": ROOT, "clientValidation": "allowInsecureFallback"},
        {"root": OTHER_ROOT},
        None,
    ]
    # The default may be strict, and a port not.
    owner = demanding({}, {"port": 8443, "tls": validation(mode="AllowInsecureFallback")})
    assert told(owner) == {"InsecureFrontendValidationMode": (True, "ConfigurationChanged")}


@pytest.mark.parametrize(
    ("reference", "documents", "reason", "words"),
    [
        (authority("gone"), [], "InvalidCACertificateRef", "ConfigMap edge/gone not found"),
        (authority("empty"), [entries("ConfigMap", "edge/empty", x="")], "InvalidCACertificateRef", "has no ca.crt"),
        (
            authority("text"),
            [entries("ConfigMap", "edge/text", **{"ca.crt": "canary"})],
            "InvalidCACertificateRef",
            "ca.crt is not in PEM",
        ),
        (
            authority("bad"),
            [entries("ConfigMap", "edge/bad", **{"ca.crt": "-----BEGIN CERTIFICATE-----\ncanary\n-----END CERTIFICATE-----\n"})],
            "InvalidCACertificateRef",
            "ca.crt holds no certificates in PEM",
        ),
        (authority(kind="Service"), [], "InvalidCACertificateKind", "authorities are in ConfigMaps and Secrets"),
        (authority() | {"group": "x.test"}, [], "InvalidCACertificateKind", "group 'x.test'"),
        (
            authority(namespace="shop"),
            [entries("ConfigMap", "shop/clients", **{"ca.crt": ROOT})],
            "RefNotPermitted",
            "no ReferenceGrant lets Gateways of edge refer to it",
        ),
    ],
)
def test_without_an_authority_a_listener_is_not_open_to_all(reference: Json, documents: list[Json], reason: str, words: str) -> None:
    snapshot = known(*documents)
    (only,) = listeners(snapshot, demanding(validation(reference)))
    assert said(only) == FINE | {
        "Accepted": (False, "NoValidCACertificate"),
        "ResolvedRefs": (False, reason),
        "Programmed": (False, "Invalid"),
    }
    assert not only.served
    message = next(one.message for one in only.conditions() if one.type == "ResolvedRefs")
    assert words in message
    assert "canary" not in message
    # One that can be used is enough to serve; the other is told.
    (only,) = listeners(snapshot, demanding(validation(reference, authority())))
    assert said(only) == FINE | {"ResolvedRefs": (False, reason)}
    assert only.served
    assert only.tls is not None
    assert only.tls["root"] == ROOT


def test_authorities_of_other_namespaces_and_of_secrets() -> None:
    allowed = grant("shop/g", FROM_EDGE, {"group": "", "kind": "ConfigMap"})
    snapshot = known(
        entries("ConfigMap", "shop/clients", **{"ca.crt": ROOT}), allowed, entries("Secret", "edge/more", **{"ca.crt": OTHER_ROOT})
    )
    found = client_trust(snapshot, demanding(validation(authority(namespace="shop"), authority("more", "Secret"))), 443)
    assert found == ({"root": ROOT + OTHER_ROOT}, [])


def showing(reference: Json | None) -> Json:
    found = gateway()
    found["spec"]["tls"] = {"backend": {} if reference is None else {"clientCertificateRef": reference}}
    return found


def test_the_certificate_that_backends_are_shown() -> None:
    pair = {"cert": CHAIN.decode(), "key": PAIR.private_key_pem.bytes().decode()}
    snapshot = known()
    assert own_certificate(snapshot, showing({"name": "tls"})) == pair
    assert own_certificate(snapshot, showing(None)) is None
    assert own_certificate(snapshot, gateway()) is None
    assert told(showing({"name": "tls"}), pair) == {"ResolvedRefs": (True, "ResolvedRefs")}
    assert told(gateway()) == {}


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ({"name": "gone"}, "InvalidClientCertificateRef"),
        ({"name": "tls", "group": "x.test"}, "InvalidClientCertificateRef"),
        ({"name": "tls", "kind": "ConfigMap"}, "InvalidClientCertificateRef"),
        ({"name": "half"}, "InvalidClientCertificateRef"),
        ({"name": "tls", "namespace": "shop"}, "RefNotPermitted"),
    ],
)
def test_a_certificate_that_cannot_be_shown(reference: Json, reason: str) -> None:
    snapshot = known(secret("shop/tls"), secret("edge/half", crt=CHAIN))
    owner = showing(reference)
    found = own_certificate(snapshot, owner)
    assert isinstance(found, Unmet)
    assert told(owner, found) == {"ResolvedRefs": (False, reason)}


CERTIFICATE: Json = {"cert": "C", "key": "K"}


@pytest.mark.parametrize(
    ("place", "value", "shown"),
    [
        ("backends", {"host": "a:1", "policies": {"backendTLS": {"hostname": "x"}}}, ["policies", "backendTLS"]),
        ("routes", {"backends": [{"host": "a:1", "policies": {"backendTLS": {}}}]}, ["backends", 0, "policies", "backendTLS"]),
        ("policies", {"policy": {"backendTLS": {}}}, ["policy", "backendTLS"]),
        # Not these: they say their own, are named by the client, speak no TLS or are called by a policy.
        ("backends", {"policies": {"backendTLS": {"cert": "own", "key": "own"}}}, None),
        ("backends", {"policies": {"backendTLS": {"spiffe": {}}}}, None),
        ("routes", {"backends": [{"dynamic": {}, "policies": {"backendTLS": {}}}]}, None),
        ("backends", {"name": "x", "dynamic": {}, "policies": {"backendTLS": {}}}, None),
        ("backends", {"host": "a:1", "policies": {"http": {}}}, None),
        ("policies", {"policy": {"extAuthz": {"policies": {"backendTLS": {}}}}}, None),
        ("routes", {"policies": {"extAuthz": {"policies": {"backendTLS": {}}}}}, None),
        ("listeners", {"policies": {"backendTLS": {}}}, None),
    ],
)
def test_who_is_shown_the_certificate(place: str, value: Json, shown: list[Any] | None) -> None:
    before = Fragment(key="x", place=place, value=value)
    (found,) = with_certificate([before], CERTIFICATE)
    assert list(with_certificate([before], None)) == [before]
    if shown is None:
        assert found == before
        return
    at: Any = found.value
    for step in shown:
        at = at[step]
    assert CERTIFICATE.items() <= at.items()


def test_the_backends_of_one_gateway_are_shown_its_certificate() -> None:
    backend = gateway_backend("shop/away", static={"host": "away.test", "port": 443}, policies={"tls": {"sni": "away.test"}})
    plain = gateway(name="edge/other")
    routes = [
        http_route(f"shop/{name}", {"backendRefs": [own("away")]}, parent={"name": name, "namespace": "edge"}) for name in ("main", "other")
    ]
    world = everything(Snapshot.of([gateway_class(), secret(), backend, showing({"name": "tls"}), plain, *routes]), {})
    found = {
        key.name: next(one.value["policies"]["backendTLS"] for one in fragments if one.place == "backends")
        for key, fragments in world.gateways.items()
    }
    assert found == {
        "main": {"hostname": "away.test", "cert": CHAIN.decode(), "key": PAIR.private_key_pem.bytes().decode()},
        "other": {"hostname": "away.test"},
    }
    status = next(one.content for one in world.statuses if one.key == ObjectKey("edge", "main") and "listeners" in one.content)
    assert [one["type"] for one in status["conditions"]] == ["Accepted", "Programmed", "ResolvedRefs"]


def test_a_policy_of_a_backend_whose_place_a_client_names_is_shown_nothing() -> None:
    dynamic = Fragment(key="b", place="backends", value={"name": "shop/any", "dynamic": {}})
    fixed = Fragment(key="c", place="backends", value={"name": "shop/away", "host": "a:1"})
    policies = [
        Fragment(key=name, place="policies", value={"target": {"backend": {"backend": {"name": name}}}, "policy": {"backendTLS": {}}})
        for name in ("shop/any", "shop/away")
    ]
    found = {one.key: one for one in with_certificate([dynamic, fixed, *policies], CERTIFICATE)}
    assert found["shop/any"] == policies[0]
    assert found["shop/away"].value["policy"] == {"backendTLS": CERTIFICATE}
