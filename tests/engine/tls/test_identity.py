"""What a certificate says of its owner."""

from __future__ import annotations

import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.engine.tls.tls_rig import pair

from headgate_engine.tls.identity import CertificateIdentity, identity_of


def made(*names: x509.GeneralName, common: str | None = "someone") -> bytes:
    """A certificate with these alternative names (DER)."""
    import datetime

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Example"),
                         *([x509.NameAttribute(NameOID.COMMON_NAME, common)] if common else [])])  # fmt: skip
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")]))
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=1))
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


SPIFFE = x509.UniformResourceIdentifier("spiffe://td.test/ns/shop/sa/web")


def test_all_of_it() -> None:
    names = (x509.DNSName("a.test"), SPIFFE, x509.RFC822Name("me@a.test"), x509.IPAddress(ipaddress.ip_address("10.0.0.1")))
    found = identity_of(made(*names))
    assert (found.subject, found.issuer, found.subject_cn) == ("CN=someone,O=Example", "CN=authority", "someone")
    assert found.subject_alt_names == ("a.test", "spiffe://td.test/ns/shop/sa/web", "me@a.test", "10.0.0.1")
    assert found.spiffe_id == found.name == "spiffe://td.test/ns/shop/sa/web"
    assert found.workload == ("td.test", "shop", "web")
    assert found.certificate.startswith("-----BEGIN CERTIFICATE-----")
    assert found.certificate not in repr(found)


def test_what_is_not_there() -> None:
    found = identity_of(made(common=None))
    assert (found.subject_cn, found.subject_alt_names, found.spiffe_id, found.workload) == (None, (), None, None)
    assert found.name == "O=Example"
    two = identity_of(made(SPIFFE, x509.UniformResourceIdentifier("spiffe://td.test/other")))
    assert two.spiffe_id is None, "an identity has one SPIFFE ID"
    other = identity_of(made(x509.UniformResourceIdentifier("spiffe://td.test/other")))
    assert (other.spiffe_id, other.workload) == ("spiffe://td.test/other", None)


@pytest.mark.parametrize(
    ("held", "wanted", "found"),
    [
        ("a.test", "a.test", True),
        ("A.test", "a.TEST", True),
        ("*.a.test", "x.a.test", True),
        ("*.a.test", "x.y.a.test", False),
        ("*.a.test", "a.test", False),
        ("x.a.test", "*.a.test", False),
        ("spiffe://td/x", "spiffe://td/x", True),
        ("spiffe://td/x", "spiffe://td/X", False),
        ("10.0.0.1", "10.0.0.1", True),
        ("b.test", "a.test", False),
    ],
)
def test_names(held: str, wanted: str, found: bool) -> None:
    identity = CertificateIdentity("s", "i", None, (held,), "pem")
    assert identity.has_name(wanted) is found


def test_what_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="parsing"):
        identity_of(b"no certificate")
    assert identity_of(_der(pair("a.test").cert)).subject_alt_names == ("a.test",)


def _der(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificates(pem)[0].public_bytes(serialization.Encoding.DER)
