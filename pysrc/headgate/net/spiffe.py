"""TLS with the X.509-SVID of the gateway, as the workers use it.

The supervisor fetches the SVID and gives each worker every new one. Connections that are open go on; the next handshake
uses it. Sessions are not resumed: what is resumed is not verified again, and SVIDs are good for an hour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cryptography import x509

from headgate.crypto.svid import check_svid
from headgate.ir.tls import BackendTls, ServerTls, Svid
from headgate_engine.errors import TlsError
from headgate_engine.link.handshake import HandshakeError
from headgate_engine.link.secure import SecureTransport
from headgate_engine.tls.context import TlsContext
from headgate_engine.tls.identity import trust_domain_of

NO_SVID: Final = "no X.509-SVID has come from the SPIFFE Workload API"


class WorkloadIdentity:
    """The SVID of this process; None until one has come, and when it has expired. `number` changes with it."""

    def __init__(self) -> None:
        self.svid: Svid | None = None
        self.number = 0

    def take(self, svid: Svid | None) -> None:
        """Use another SVID from now on."""
        self.svid = svid
        self.number += 1


IDENTITY: Final = WorkloadIdentity()


class _Contexts:
    """Makes a context for each SVID, when it is first needed."""

    def __init__(self, make: Callable[[Svid], TlsContext]) -> None:
        self._make = make
        self._made: TlsContext | None = None
        self._number = -1

    def current(self) -> TlsContext:
        """Return the context. Raises TlsError without an SVID, or for what the library refuses."""
        if IDENTITY.svid is None:
            self._made = None
            raise TlsError(NO_SVID)
        if self._made is None or self._number != IDENTITY.number:
            self._made = self._make(IDENTITY.svid)
            self._number = IDENTITY.number
        return self._made


class SpiffeListener:
    """The contexts of a listener. Its clients must have an SVID of the gateway's own trust domain."""

    def __init__(self, tls: ServerTls, alpn: tuple[bytes, ...]) -> None:
        def make(svid: Svid) -> TlsContext:
            context = TlsContext(
                server=True,
                cert=svid.cert_pem,
                key=svid.key_pem.reveal_bytes(),
                least=tls.versions[0],
                most=tls.versions[1],
                roots=svid.authorities(svid.trust_domain),
                suites=tls.suites,
                groups=tls.groups,
                alpn=alpn,
            )
            context.approve = peers_of(svid.trust_domain, ())
            return context

        self._contexts = _Contexts(make)

    def find(self, name: str | None) -> TlsContext:
        """Return the context for a handshake. Raises TlsError if there is none."""
        del name
        return self._contexts.current()


class SpiffeClient:
    """The contexts for connections to backends of equal settings."""

    def __init__(self, tls: BackendTls, alpn: tuple[bytes, ...]) -> None:
        def make(svid: Svid) -> TlsContext:
            domain = trust_domain(tls, svid)
            roots = svid.authorities(domain)
            if roots is None:
                raise TlsError(f"the SPIFFE Workload API provides no bundle for the trust domain {domain}")
            return TlsContext(
                server=False,
                cert=svid.cert_pem,
                key=svid.key_pem.reveal_bytes(),
                roots=roots,
                groups=tls.groups,
                alpn=alpn,
            )

        self._contexts = _Contexts(make)

    async def ready(self) -> TlsContext:
        """Return the context for a handshake. Raises HandshakeError if there is none."""
        try:
            return self._contexts.current()
        except TlsError as error:
            raise HandshakeError(f"TLS: {error}") from None


def trust_domain(tls: BackendTls, svid: Svid) -> str:
    """Return the trust domain of a backend: that of the names that it may have, else the gateway's own."""
    named = trust_domain_of(tls.subject_alt_names[0]) if tls.subject_alt_names else None
    return named or svid.trust_domain


def approver(tls: BackendTls) -> Callable[[SecureTransport], None]:
    """Return what checks the SVID of a backend."""

    def check(transport: SecureTransport) -> None:
        if IDENTITY.svid is None:
            raise HandshakeError(f"TLS: {NO_SVID}")
        peers_of(trust_domain(tls, IDENTITY.svid), tls.subject_alt_names)(transport)

    return check


def peers_of(domain: str, names: tuple[str, ...]) -> Callable[[SecureTransport], None]:
    """Return what raises HandshakeError unless a peer, whose chain the library has verified, has an SVID of a trust
    domain, and one of these SPIFFE IDs if there are some.
    """

    def check(transport: SecureTransport) -> None:
        der = transport.peer_certificate()
        try:
            found = check_svid(x509.load_der_x509_certificate(der or b""))
        except ValueError as error:
            raise HandshakeError(f"TLS: no X.509-SVID: {error}") from None
        if trust_domain_of(found) != domain:
            raise HandshakeError(f"TLS: the SPIFFE ID {found} is not of the trust domain {domain}")
        if names and found not in names:
            raise HandshakeError(f"TLS: the SPIFFE ID {found} is not accepted")

    return check
