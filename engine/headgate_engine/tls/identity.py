"""What a certificate says of its owner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from headgate_engine.lazy_pattern import lazy_pattern

# https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE-ID.md; the path as service meshes have it.
SPIFFE: Final = "spiffe://"
SPIFFE_ID: Final = lazy_pattern(r"spiffe://([a-z0-9._-]{1,255})((?:/[A-Za-z0-9._-]+)+)")
LONGEST_ID: Final = 2048
WORKLOAD: Final = lazy_pattern(r"spiffe://([^/]+)/ns/([^/]+)/sa/([^/]+)")


@dataclass(frozen=True, slots=True)
class CertificateIdentity:
    """The owner of a certificate that was accepted.

    `subject_alt_names`: DNS names, URIs, e-mail and IP addresses. `certificate`: the certificate itself in PEM.
    """

    subject: str
    issuer: str
    subject_cn: str | None
    subject_alt_names: tuple[str, ...]
    certificate: str = field(repr=False)

    @property
    def spiffe_id(self) -> str | None:
        """The SPIFFE ID: the only URI of its kind. None without one, or with several."""
        found = [name for name in self.subject_alt_names if name.startswith(SPIFFE)]
        return found[0] if len(found) == 1 else None

    @property
    def workload(self) -> tuple[str, str, str] | None:
        """Trust domain, namespace and service account of a SPIFFE ID that has them."""
        found = WORKLOAD.fullmatch(self.spiffe_id or "")
        return None if found is None else (found[1], found[2], found[3])

    @property
    def name(self) -> str:
        """The name for the log: the SPIFFE ID, else the first alternative name, else the subject."""
        return self.spiffe_id or (self.subject_alt_names[0] if self.subject_alt_names else self.subject)

    def has_name(self, wanted: str) -> bool:
        """Tell whether an alternative name is this one; a DNS name with a wildcard covers one label (RFC 6125)."""
        if wanted in self.subject_alt_names:
            return True
        _, dot, rest = wanted.lower().partition(".")
        names = {name.lower() for name in self.subject_alt_names if "://" not in name}
        return wanted.lower() in names or bool(dot and "://" not in wanted and f"*.{rest}" in names)


def trust_domain_of(spiffe_id: str) -> str | None:
    """Return the trust domain of the SPIFFE ID of a workload, None if the text is no such ID (SPIFFE-ID section 2)."""
    found = SPIFFE_ID.fullmatch(spiffe_id) if len(spiffe_id) <= LONGEST_ID else None
    if found is None or any(part in (".", "..") for part in found[2].split("/")):
        return None
    return found[1]


def identity_of(der: bytes) -> CertificateIdentity:
    """Return the owner of a certificate (DER). Raises ValueError if it cannot be read."""
    from cryptography import x509  # 9 MB: only where peers have certificates
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import NameOID

    found = x509.load_der_x509_certificate(der)
    names: list[str] = []
    try:
        extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, x509.DuplicateExtension):
        pass
    else:
        for name in extension.value:
            if isinstance(name, x509.DNSName | x509.UniformResourceIdentifier | x509.RFC822Name):
                names.append(name.value)
            elif isinstance(name, x509.IPAddress):
                names.append(str(name.value))
    common = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return CertificateIdentity(
        subject=found.subject.rfc4514_string(),
        issuer=found.issuer.rfc4514_string(),
        subject_cn=str(common[0].value) if common else None,
        subject_alt_names=tuple(names),
        certificate=found.public_bytes(Encoding.PEM).decode("ascii"),
    )
