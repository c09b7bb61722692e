"""X.509-SVIDs and bundles as an agent gives them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from headgate.crypto.svid import MOST, certificates_of, check_svid, svid_of

DER = serialization.Encoding.DER
OWN = "spiffe://td.test/ns/shop/sa/web"
KEY = ec.generate_private_key(ec.SECP256R1())


def made(*names: x509.GeneralName, ca: bool = False, usage: str = "", key: Any = KEY) -> x509.Certificate:
    now = datetime.now(UTC).replace(microsecond=0)
    empty = x509.Name([])
    built = x509.CertificateBuilder().subject_name(empty).issuer_name(empty).public_key(key.public_key())
    built = built.serial_number(x509.random_serial_number()).not_valid_before(now).not_valid_after(now + timedelta(hours=1))
    if names:
        built = built.add_extension(x509.SubjectAlternativeName(names), critical=True)
    if usage:
        signs, lists = usage == "keyCertSign", usage == "cRLSign"
        found = x509.KeyUsage(True, False, False, False, False, signs, lists, False, False)
        built = built.add_extension(found, critical=True)
    return built.add_extension(x509.BasicConstraints(ca, None), critical=True).sign(key, hashes.SHA256())


def uri(text: str) -> x509.UniformResourceIdentifier:
    return x509.UniformResourceIdentifier(text)


def key_bytes(key: Any = KEY) -> bytes:
    found: bytes = key.private_bytes(DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return found


LEAF = made(uri(OWN))
ROOT = made(uri("spiffe://td.test"), ca=True)
ONE = ROOT.public_bytes(DER)


@pytest.mark.parametrize(
    ("certificate", "told"),
    [
        (made(), "not the SPIFFE ID"),
        (made(x509.DNSName("a.test")), "not the SPIFFE ID"),
        (made(uri("https://td.test/a")), "not the SPIFFE ID"),
        (made(uri("spiffe://td.test")), "not the SPIFFE ID"),
        (made(uri("spiffe://td.test/")), "not the SPIFFE ID"),
        (made(uri("spiffe://td.test/a//b")), "not the SPIFFE ID"),
        (made(uri("spiffe://td.test/a/../b")), "not the SPIFFE ID"),
        (made(uri("spiffe://TD.test/a")), "not the SPIFFE ID"),
        (made(uri(f"spiffe://td.test/{'a' * 2048}")), "not the SPIFFE ID"),
        (made(uri(OWN), uri(OWN)), "not the SPIFFE ID"),
        (made(uri(OWN), uri("https://td.test/a")), "not the SPIFFE ID"),
        (made(uri(OWN), ca=True), "that of an authority"),
        (made(uri(OWN), usage="keyCertSign"), "that of an authority"),
        (made(uri(OWN), usage="cRLSign"), "that of an authority"),
    ],
)
def test_certificates_that_are_no_svid(certificate: x509.Certificate, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_svid(certificate)


def test_certificates_that_are() -> None:
    assert check_svid(LEAF) == OWN
    assert check_svid(made(uri(OWN), x509.DNSName("a.test"), usage="digitalSignature")) == OWN


def test_an_svid_has_what_came_with_it() -> None:
    other = made(uri("spiffe://other.test"), ca=True)
    chain = LEAF.public_bytes(DER) + ROOT.public_bytes(DER)
    federated = {"spiffe://other.test": other.public_bytes(DER), "spiffe://broken.test": b"x", "spiffe://td.test": other.public_bytes(DER)}
    found = svid_of(OWN, chain, key_bytes(), ROOT.public_bytes(DER) * 2, federated)
    assert (found.spiffe_id, found.trust_domain) == (OWN, "td.test")
    assert x509.load_pem_x509_certificates(found.cert_pem) == [LEAF, ROOT]
    assert found.expires == LEAF.not_valid_after_utc.timestamp()
    own = found.authorities("td.test")
    assert own is not None
    assert x509.load_pem_x509_certificates(own) == [ROOT, ROOT], "nobody else's takes its place"
    assert dict(found.bundles).keys() == {"td.test", "other.test"}
    assert found.authorities("broken.test") is None
    assert "PRIVATE" not in repr(found)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"spiffe_id": "spiffe://td.test/other"}, "does not have the SPIFFE ID"),
        ({"certificates": b""}, "does not have the SPIFFE ID"),
        ({"certificates": b"x"}, "not a row of certificates"),
        ({"key": b"secret"}, "^the key of the X.509-SVID cannot be read$"),
        ({"key": key_bytes(ec.generate_private_key(ec.SECP256R1()))}, "not that of its certificate"),
        ({"bundle": b""}, "bundle of the trust domain td.test is empty"),
        ({"bundle": b"\x30\x05"}, "not a row of certificates"),
    ],
)
def test_answers_that_cannot_be_used(changed: dict[str, Any], told: str) -> None:
    given = {"spiffe_id": OWN, "certificates": LEAF.public_bytes(DER), "key": key_bytes(), "bundle": ROOT.public_bytes(DER)}
    with pytest.raises(ValueError, match=told):
        svid_of(**{**given, **changed}, federated={})


@pytest.mark.parametrize("der", [b"\x30", b"\x30\x80", b"\x30\x85\0\0\0\0\1", b"\x30\x82\1", b"\x31\x00", b"\x30\x84\xff\xff\xff\xff"])
def test_lengths_that_lie(der: bytes) -> None:
    with pytest.raises(ValueError, match="not a row of certificates"):
        certificates_of(der)


def test_a_bundle_has_a_bound() -> None:
    one = ROOT.public_bytes(DER)
    assert len(certificates_of(one * MOST)) == MOST
    with pytest.raises(ValueError, match="not a row"):
        certificates_of(one * (MOST + 1))


@given(st.binary(max_size=64) | st.integers(0, 600).flatmap(lambda at: st.binary(max_size=8).map(lambda more: ONE[:at] + more + ONE[at:])))
def test_whatever_comes_is_read_or_refused(der: bytes) -> None:
    try:
        found = certificates_of(der)
    except ValueError:
        return
    assert b"".join(one.public_bytes(DER) for one in found) == der
