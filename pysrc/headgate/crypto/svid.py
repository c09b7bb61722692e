"""X.509-SVIDs: certificates that carry a SPIFFE ID.

Source: https://github.com/spiffe/spiffe/blob/main/standards/X509-SVID.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from headgate.document.secret import Secret
from headgate.ir.tls import Svid
from headgate_engine.tls.identity import SPIFFE, trust_domain_of

# Certificates of one chain or bundle.
MOST: Final = 256


def svid_of(spiffe_id: str, certificates: bytes, key: bytes, bundle: bytes, federated: Mapping[str, bytes]) -> Svid:
    """Return an SVID after checking it. All is DER, `key` is PKCS #8. Raises ValueError, which quotes nothing of it.

    `federated`: the authorities of other trust domains, by their SPIFFE IDs. One that cannot be read is left out.
    """
    chain = certificates_of(certificates)
    if not chain or check_svid(chain[0]) != spiffe_id:
        raise ValueError("the X.509-SVID does not have the SPIFFE ID that it was given with")
    domain = trust_domain_of(spiffe_id)
    assert domain is not None
    try:
        private = serialization.load_der_private_key(key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("the key of the X.509-SVID cannot be read") from None
    spki, der = serialization.PublicFormat.SubjectPublicKeyInfo, serialization.Encoding.DER
    if private.public_key().public_bytes(der, spki) != chain[0].public_key().public_bytes(der, spki):
        raise ValueError("the key of the X.509-SVID is not that of its certificate")
    own = certificates_of(bundle)
    if not own:
        raise ValueError(f"the bundle of the trust domain {domain} is empty")
    bundles = {domain: _pem(own)}
    for name, other in federated.items():
        other_domain = name.removeprefix(SPIFFE)
        try:
            found = certificates_of(other)
        except ValueError:
            continue
        if found and other_domain != domain:
            bundles[other_domain] = _pem(found)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Svid(
        spiffe_id=spiffe_id,
        trust_domain=domain,
        cert_pem=_pem(chain),
        key_pem=Secret(pem.decode("ascii")),
        expires=chain[0].not_valid_after_utc.timestamp(),
        bundles=tuple(bundles.items()),
    )


def certificates_of(der: bytes) -> list[x509.Certificate]:
    """Return the certificates that stand one behind the other. Raises ValueError."""
    found: list[x509.Certificate] = []
    while der:
        size = _size(der)
        if size > len(der) or len(found) == MOST:
            raise ValueError("not a row of certificates in DER")
        found.append(x509.load_der_x509_certificate(der[:size]))
        der = der[size:]
    return found


def _size(der: bytes) -> int:
    """Return the length of the SEQUENCE that a text in DER begins with (X.690 section 8.1.3)."""
    if len(der) < 2 or der[0] != 0x30:
        raise ValueError("not a row of certificates in DER")
    if der[1] < 0x80:
        return 2 + der[1]
    count = der[1] & 0x7F
    if not 1 <= count <= 4 or len(der) < 2 + count:
        raise ValueError("not a row of certificates in DER")
    return 2 + count + int.from_bytes(der[2 : 2 + count])


def _pem(certificates: list[x509.Certificate]) -> bytes:
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certificates)


def check_svid(certificate: x509.Certificate) -> str:
    """Return the SPIFFE ID of a leaf certificate (section 5.2). Raises ValueError if it is not that of a workload."""
    try:
        extensions = {type(one.value): one.value for one in certificate.extensions}
    except ValueError:
        raise ValueError("the extensions of the certificate cannot be read") from None
    names, uris = extensions.get(x509.SubjectAlternativeName), []
    if isinstance(names, x509.SubjectAlternativeName):
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    if len(uris) != 1 or trust_domain_of(uris[0]) is None:
        raise ValueError("the certificate has not the SPIFFE ID of a workload as its only URI")
    basic, usage = extensions.get(x509.BasicConstraints), extensions.get(x509.KeyUsage)
    signs = isinstance(usage, x509.KeyUsage) and (usage.key_cert_sign or usage.crl_sign)
    if signs or (isinstance(basic, x509.BasicConstraints) and basic.ca):
        raise ValueError("the certificate is that of an authority, not of a workload")
    return str(uris[0])
