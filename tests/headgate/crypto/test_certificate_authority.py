"""What an authority may sign, and what it signs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from headgate.crypto.certificate_authority import LIFETIME, CertificateAuthority

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEYS: dict[str, Callable[[], Any]] = {
    "EC P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "EC P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
}


def authority(
    *extensions: x509.ExtensionType,
    key: Any = None,
    ca: bool | None = True,
    issuer: str = "root",
    begins: timedelta = timedelta(days=-30),
    ends: timedelta = timedelta(days=30),
) -> tuple[bytes, bytes]:
    """Certificate and key in PEM; self-signed, whatever the issuer's name is."""
    key = key or KEYS["EC P-256"]()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "root")])
    signer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)])
    built = x509.CertificateBuilder().subject_name(name).issuer_name(signer).public_key(key.public_key())
    built = built.serial_number(x509.random_serial_number()).not_valid_before(NOW + begins).not_valid_after(NOW + ends)
    if ca is not None:
        built = built.add_extension(x509.BasicConstraints(ca, None), critical=True)
    for extension in extensions:
        built = built.add_extension(extension, critical=False)
    signed = built.sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return signed.public_bytes(serialization.Encoding.PEM), pem


@pytest.mark.parametrize("kind", KEYS)
def test_what_is_signed_is_good(kind: str) -> None:
    own, key = authority(key=KEYS[kind]())
    issued = CertificateAuthority(own, key).issue("a.test", NOW)
    [leaf] = x509.load_pem_x509_certificates(issued.cert_pem)
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(own))
    private = serialization.load_pem_private_key(issued.key_pem, None)
    assert leaf.public_key() == private.public_key()
    assert leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value == x509.SubjectAlternativeName(
        [x509.DNSName("a.test")]
    )
    assert leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value == x509.ExtendedKeyUsage(
        [ExtendedKeyUsageOID.SERVER_AUTH]
    )
    assert not leaf.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert (leaf.not_valid_before_utc, leaf.not_valid_after_utc) == (NOW - timedelta(hours=1), NOW + LIFETIME)
    assert issued.expires == (NOW + LIFETIME).timestamp()


def test_an_intermediate_authority_is_sent_along() -> None:
    own, key = authority(issuer="above")
    issued = CertificateAuthority(own, key).issue("a.test", NOW)
    assert len(x509.load_pem_x509_certificates(issued.cert_pem)) == 2
    assert issued.cert_pem.endswith(own)


def test_it_is_good_for_no_longer_than_the_authority() -> None:
    own, key = authority(begins=timedelta(minutes=-5), ends=timedelta(minutes=5))
    [leaf] = x509.load_pem_x509_certificates(CertificateAuthority(own, key).issue("a.test", NOW).cert_pem)
    assert (leaf.not_valid_before_utc, leaf.not_valid_after_utc) == (NOW - timedelta(minutes=5), NOW + timedelta(minutes=5))
    for span in ((timedelta(days=-2), timedelta(days=-1)), (timedelta(days=1), timedelta(days=2))):
        own, key = authority(begins=span[0], ends=span[1])
        with pytest.raises(ValueError, match="has expired, or is not valid yet"):
            CertificateAuthority(own, key).issue("a.test", NOW)


def usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(True, False, False, False, False, signs, False, False, False)


@pytest.mark.parametrize(
    ("extensions", "ca", "told"),
    [
        ((), False, "needs the certificate of an authority"),
        ((), None, "needs the certificate of an authority"),
        ((usage(signs=False),), True, "key usage"),
        ((x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]),), True, "extended key usage"),
    ],
)
def test_certificates_that_may_not_sign(extensions: tuple[Any, ...], ca: bool | None, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        CertificateAuthority(*authority(*extensions, ca=ca))


def test_what_it_may_sign_with_is_allowed() -> None:
    CertificateAuthority(*authority(usage(signs=True), x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])))


def test_keys_that_take_too_long_or_cannot_sign() -> None:
    own, _ = authority()
    plain = serialization.NoEncryption()
    other = dsa.generate_private_key(2048)
    pem = other.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    with pytest.raises(ValueError, match="not an RSA, EC"):
        CertificateAuthority(own, pem)
    long = rsa.generate_private_key(65537, 4104)
    pem = long.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    with pytest.raises(ValueError, match="more than 4096 bits"):
        CertificateAuthority(own, pem)


@pytest.mark.parametrize(
    ("permitted", "excluded", "name", "allowed"),
    [
        (None, None, "a.test", True),
        (["test"], None, "a.test", True),
        (["a.test"], None, "a.test", True),
        (["a.test"], None, "x.a.test", True),
        (["a.test"], None, "xa.test", False),
        (["A.Test"], None, "x.a.test", True),
        ([".a.test"], None, "a.test", False),
        ([".a.test"], None, "x.a.test", True),
        (["b.test", "a.test"], None, "a.test", True),
        ([""], None, "a.test", True),
        (None, ["a.test"], "a.test", False),
        (None, ["a.test"], "b.test", True),
        (["test"], ["a.test"], "x.a.test", False),
    ],
)
def test_name_constraints(permitted: list[str] | None, excluded: list[str] | None, name: str, allowed: bool) -> None:
    limits = [None if names is None else [x509.DNSName(one) for one in names] for names in (permitted, excluded)]
    extensions = (x509.NameConstraints(*limits),) if any(limits) else ()
    found = CertificateAuthority(*authority(*extensions))
    if allowed:
        assert found.issue(name, NOW)
    else:
        with pytest.raises(ValueError, match="name constraints"):
            found.issue(name, NOW)


@pytest.mark.parametrize("name", ["", "a b", "*.a.test", "a..test", "-a.test", "a\0.test", "1.2.3.4", "x" * 64, "a." * 127 + "b", "A.test"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ValueError, match="is not a host name"):
        CertificateAuthority(*authority()).issue(name, NOW)
