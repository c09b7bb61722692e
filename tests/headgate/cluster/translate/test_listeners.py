"""Listeners of a Gateway: which can be served, and what is wrong with the others."""

from __future__ import annotations

from typing import Any

import pytest
import trustme
from certificates_rig import secret
from manifests import Json, gateway, listener

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.listeners import ListenerState, fragment_value, listeners

_OTHER = trustme.CA().issue_cert("other.test")
OTHER = _OTHER.cert_chain_pems[0].bytes(), _OTHER.private_key_pem.bytes()
TLS = {"tls": {"certificateRefs": [{"name": "tls"}]}}


def found(*specs: Json) -> list[ListenerState]:
    return listeners(Snapshot.of([secret(), secret("edge/other", crt=OTHER[0], key=OTHER[1])]), gateway(*specs))


def said(state: ListenerState) -> dict[str, tuple[bool, str]]:
    return {one.type: (one.holds, one.reason) for one in state.conditions()}


FINE = {"Accepted": (True, "Accepted"), "Conflicted": (False, "NoConflicts"), "ResolvedRefs": (True, "ResolvedRefs")}


def test_a_plain_listener() -> None:
    (only,) = found(listener(hostname="*.Shop.test"))
    assert said(only) == FINE
    assert only.served
    assert [one.kind for one in only.supported] == ["HTTPRoute", "GRPCRoute"]
    assert fragment_value(only, "edge") == {"name": "web", "namespace": "edge", "protocol": "HTTP", "hostname": "*.shop.test"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (listener(protocol="UDP"), "protocol UDP is not supported"),
        *((listener(port=port), f"port {port} is reserved") for port in (15000, 15020, 15021)),
    ],
)
def test_what_is_not_supported_is_not_accepted(spec: Json, words: str) -> None:
    (only,) = found(spec)
    assert said(only) == FINE | {"Accepted": (False, "UnsupportedProtocol"), "Programmed": (False, "Invalid")}
    assert words in only.conditions()[0].message
    assert not only.served


def test_the_later_of_two_that_cannot_be_told_apart_is_conflicted() -> None:
    states = found(
        listener("a"), listener("b"), listener("c", hostname="a.test"), listener("d", hostname="A.test"),
        listener("e", protocol="HTTPS", **TLS), listener("f", port=443, protocol="HTTPS", **TLS), listener("g", port=15000), listener("h", port=15000),
    )  # fmt: skip
    assert [one.name for one in states if one.served] == ["a", "c", "f"]
    conflicts = {one.name: said(one)["Conflicted"] for one in states if one.conflict}
    assert conflicts == {"b": (True, "HostnameConflict"), "d": (True, "HostnameConflict"), "e": (True, "ProtocolConflict")}
    assert said(states[1])["Accepted"] == (False, "HostnameConflict")
    assert "(listener a)" in states[1].conditions()[0].message


@pytest.mark.parametrize(
    ("references", "reasons"),
    [
        ([{"name": "tls"}], []),
        ([], ["InvalidCertificateRef"]),
        ([{"name": "gone"}], ["InvalidCertificateRef"]),
        ([{"name": "tls", "namespace": "shop"}], ["RefNotPermitted"]),
    ],
)
def test_https_needs_its_certificate(references: list[Json], reasons: list[str]) -> None:
    (only,) = found(listener(protocol="HTTPS", tls={"certificateRefs": references}))
    assert [one.reason for one in only.unresolved] == reasons
    assert only.accepted
    assert only.served is not bool(reasons)
    if reasons:
        assert said(only)["Programmed"] == (False, "Invalid")
        assert only.conditions()[-1].message == "Bad TLS configuration"
    else:
        assert fragment_value(only, "edge")["tls"].keys() == {"cert", "key"}


def test_one_good_certificate_is_served_beside_a_bad_one() -> None:
    (only,) = found(listener(protocol="HTTPS", tls={"certificateRefs": [{"name": "gone"}, {"name": "tls"}]}))
    assert only.served
    assert said(only)["ResolvedRefs"] == (False, "InvalidCertificateRef")


def test_all_certificates_are_kept() -> None:
    references = [{"name": name} for name in ("tls", "gone", "other", "tls")]
    (only,) = found(listener(protocol="HTTPS", tls={"certificateRefs": references}))
    form = fragment_value(only, "edge")["tls"]
    assert len(form["moreCertificates"]) == 1
    assert form["moreCertificates"][0].keys() == {"cert", "key"}
    assert form["moreCertificates"][0]["cert"] != form["cert"]
    assert said(only)["ResolvedRefs"] == (False, "InvalidCertificateRef")


@pytest.mark.parametrize(
    ("kinds", "supported", "resolved"),
    [
        ([{"kind": "HTTPRoute"}], ["HTTPRoute"], True),
        ([{"kind": "HTTPRoute"}, {"kind": "TCPRoute"}], ["HTTPRoute"], False),
        ([{"kind": "HTTPRoute", "group": "other.test"}], [], False),
    ],
)
def test_kinds_of_routes_that_a_listener_takes(kinds: list[dict[str, Any]], supported: list[str], resolved: bool) -> None:
    (only,) = found(listener(allowedRoutes={"kinds": kinds}))
    assert [one.kind for one in only.supported] == supported
    assert said(only)["ResolvedRefs"] == ((True, "ResolvedRefs") if resolved else (False, "InvalidRouteKinds"))
