"""The certificates of a listener that has several, by the names that they are for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from headgate.ir.tls import ServerTls
from headgate_engine.tls.context import TlsContext

MakeContext = Callable[[bytes, bytes, int], TlsContext]
_ANY: Final = "*."


class NamedCertificates:
    """The contexts of a listener by server name (RFC 6066 section 3): that of the exact name, then of a wildcard, whose
    star is one label (RFC 9525 section 6.3), else the first. Of two certificates for one name the first is shown.

    `make(certificate, key, number)` makes one.
    """

    def __init__(self, tls: ServerTls, make: MakeContext) -> None:
        pairs = ((tls.cert_pem, tls.key_pem), *((one.cert_pem, one.key_pem) for one in tls.others))
        self._by_name: dict[str, TlsContext] = {}
        contexts = [make(cert, key.reveal_bytes(), number) for number, (cert, key) in enumerate(pairs)]
        self._first = contexts[0]
        for (cert, _), context in zip(pairs, contexts, strict=True):
            for name in names_of(cert):
                self._by_name.setdefault(name, context)

    def find(self, name: str | None) -> TlsContext:
        """Return the context for a server name, None if the client sent none."""
        if name is None:
            return self._first
        return self._by_name.get(name) or self._by_name.get(f"{_ANY}{name.partition('.')[2]}") or self._first


def names_of(chain: bytes) -> Iterable[str]:
    """Return the host names that the first certificate of a chain is for: alternative names, else the common name."""
    leaf = x509.load_pem_x509_certificates(chain)[0]
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = names.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        found = [str(one.value) for one in leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return [one.lower() for one in found]
