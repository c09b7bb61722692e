"""An authority that signs certificates for servers, one for each name (RFC 5280)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

# How long a certificate is good, and how far its beginning lies back for clients whose clock is slow.
LIFETIME: Final = timedelta(days=1)
BACKDATED: Final = timedelta(hours=1)
# Signing with a longer RSA key takes more than 5 ms.
MOST_RSA_BITS: Final = 4096
QUICK_RSA_BITS: Final = 2048
LONGEST_NAME: Final = 253
_LABEL: Final = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")

SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey


class IssuedPair(NamedTuple):
    """A certificate with the chain to its authority, and its key, both in PEM. `expires`: seconds since the epoch."""

    cert_pem: bytes
    key_pem: bytes
    expires: float


class CertificateAuthority:
    """Signs certificates with the key of `cert_pem`, whose first certificate is the authority's own.

    Raises ValueError for a certificate that may not sign those of servers, or a key that it cannot sign with.
    `checked`: the key was checked before, which takes half a second for one of RSA with 4096 bits.
    """

    def __init__(self, cert_pem: bytes, key_pem: bytes, *, checked: bool = False) -> None:
        chain = x509.load_pem_x509_certificates(cert_pem)
        key = serialization.load_pem_private_key(key_pem, password=None, unsafe_skip_rsa_key_validation=checked)
        if not isinstance(key, SigningKey):
            raise ValueError("the authority's key is not an RSA, EC, Ed25519 or Ed448 key")
        if isinstance(key, rsa.RSAPrivateKey) and key.key_size > MOST_RSA_BITS:
            raise ValueError(f"the authority's RSA key has more than {MOST_RSA_BITS} bits: signing takes too long")
        self._certificate = chain[0]
        self._key = key
        # Whether signing holds up a loop: with 3072 bits it takes 1.2 ms of a quiet processor, with 4096 bits 2.5.
        self.slow = isinstance(key, rsa.RSAPrivateKey) and key.key_size > QUICK_RSA_BITS
        self._permitted, self._excluded = _checked(self._certificate)
        # Clients have the root.
        self._chain = b"".join(one.public_bytes(serialization.Encoding.PEM) for one in chain if not _is_root(one))
        self._identifier = _key_identifier(self._certificate, key)

    def issue(self, name: str, now: datetime | None = None) -> IssuedPair:
        """Return a new key and a certificate for a host name in lower case. Raises ValueError if there can be none."""
        if len(name) > LONGEST_NAME or _NAME.fullmatch(name) is None or name.rpartition(".")[2].isdigit():
            raise ValueError("the name that the client asks for is not a host name")
        if not self._may_sign(name):
            raise ValueError("the name constraints of the authority do not permit the name")
        return self.issue_for([x509.DNSName(name)], now)

    def issue_for(self, names: Sequence[x509.GeneralName], now: datetime | None = None) -> IssuedPair:
        """Return a new key and a certificate for several names, which are not checked. Raises ValueError if there can
        be none now.
        """
        now = datetime.now(UTC) if now is None else now
        begins = max(now - BACKDATED, self._certificate.not_valid_before_utc)
        expires = min(now + LIFETIME, self._certificate.not_valid_after_utc)
        if not begins <= now < expires:
            raise ValueError("the certificate of the authority has expired, or is not valid yet")
        key = ec.generate_private_key(ec.SECP256R1())
        built = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([]))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(expires)
            # Critical, because the subject is empty (RFC 5280 section 4.2.1.6).
            .add_extension(x509.SubjectAlternativeName(names), critical=True)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(self._identifier, critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        signed = built.sign(self._key, _hash(self._key)).public_bytes(serialization.Encoding.PEM)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return IssuedPair(signed + self._chain, private, expires.timestamp())

    def _may_sign(self, name: str) -> bool:
        if any(_within(name, suffix) for suffix in self._excluded):
            return False
        return self._permitted is None or any(_within(name, suffix) for suffix in self._permitted)


def _checked(certificate: x509.Certificate) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the DNS names that an authority may sign for, and those that it may not, from its name constraints. Raises
    ValueError if it may not sign certificates of servers at all.
    """
    try:
        extensions = {type(one.value): one.value for one in certificate.extensions}
    except ValueError:
        raise ValueError("the extensions of the authority's certificate cannot be read") from None
    basic = extensions.get(x509.BasicConstraints)
    if not isinstance(basic, x509.BasicConstraints) or not basic.ca:
        raise ValueError("the mode dynamicCa needs the certificate of an authority (basic constraints CA)")
    usage = extensions.get(x509.KeyUsage)
    if isinstance(usage, x509.KeyUsage) and not usage.key_cert_sign:
        raise ValueError("the key usage of the authority's certificate does not have the signing of certificates")
    purposes = extensions.get(x509.ExtendedKeyUsage)
    servers = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    if isinstance(purposes, x509.ExtendedKeyUsage) and servers.isdisjoint(purposes):
        raise ValueError("the extended key usage of the authority's certificate does not have servers")
    limits = extensions.get(x509.NameConstraints)
    if not isinstance(limits, x509.NameConstraints):
        return None, ()
    permitted = [one.value.lower() for one in limits.permitted_subtrees or () if isinstance(one, x509.DNSName)]
    excluded = [one.value.lower() for one in limits.excluded_subtrees or () if isinstance(one, x509.DNSName)]
    return tuple(permitted) or None, tuple(excluded)


def _within(name: str, suffix: str) -> bool:
    """Tell whether a name lies in a subtree (RFC 5280 section 4.2.1.10). One that begins with a dot is without its top.
    """
    if suffix.startswith("."):
        return name.endswith(suffix)
    return not suffix or name == suffix or name.endswith(f".{suffix}")


def _is_root(certificate: x509.Certificate) -> bool:
    if certificate.issuer != certificate.subject:
        return False
    try:
        certificate.verify_directly_issued_by(certificate)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _key_identifier(certificate: x509.Certificate, key: SigningKey) -> x509.AuthorityKeyIdentifier:
    try:
        own = certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _hash(key: SigningKey) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None:
    """Return the hash for signatures of a key: one as strong as the curve."""
    if isinstance(key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey):
        return None
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.key_size > 256:
        return hashes.SHA384() if key.curve.key_size <= 384 else hashes.SHA512()
    return hashes.SHA256()
