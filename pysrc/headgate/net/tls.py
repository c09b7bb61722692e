"""TLS contexts for listeners and for backends, created once per configuration."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakValueDictionary

from headgate.document.lazy_dataclass import replace
from headgate.ir.digest import digest
from headgate.ir.listener import Listener
from headgate.ir.tls import BackendTls, ServerTls
from headgate_engine.errors import TlsError
from headgate_engine.link.handshake import HandshakeError
from headgate_engine.link.protocols import NEGOTIATED, PASSTHROUGH
from headgate_engine.link.secure import SecureTransport
from headgate_engine.tls.context import TlsContext, read_system_roots
from headgate_engine.tls.identity import identity_of
from headgate_engine.tls.tickets import TicketKeys

if TYPE_CHECKING:
    from headgate.net.spiffe import SpiffeClient

SECRET_BYTES: Final = 32
DEFAULT_ALPN: Final = ("http/1.1",)


class Tickets:
    """The keys of session tickets of this process: those from the supervisor, otherwise its own."""

    def __init__(self) -> None:
        self._keys: TicketKeys | None = None

    def give(self, number: int, secret: bytes) -> None:
        """Set the keys, unless there are some."""
        if self._keys is None:
            self._keys = TicketKeys(secret, number)

    def keys(self) -> TicketKeys:
        """Return the keys."""
        if self._keys is None:
            self._keys = TicketKeys(secrets.token_bytes(SECRET_BYTES), TicketKeys.number_now())
        return self._keys


TICKETS: Final = Tickets()


class ContextSource(Protocol):
    """Makes the contexts of a listener whose certificate is not configured, or chooses one of several."""

    def find(self, name: str | None) -> TlsContext | asyncio.Task[TlsContext | TlsError]:
        """Return the context for a server name (None if the client sent none), or who is making it. Raises TlsError if
        there is none.
        """


def server_context(tls: ServerTls, hostname: str | None = None) -> TlsContext | ContextSource:
    """Return the context of one listener, or what makes it. Raises TlsError for what the library refuses."""
    if tls.source == "spiffe":
        from headgate.net.spiffe import SpiffeListener  # loads cryptography

        return SpiffeListener(tls, _offered(tls))
    if tls.source == "dynamicCa":
        from headgate.net.minting import MintingListener  # loads cryptography

        def make(cert: bytes, key: bytes, name: str) -> TlsContext:
            return _context(tls, cert, key, f"{hostname}\n{name}\n")

        return MintingListener(tls, hostname, make)
    if tls.others:
        from headgate.net.certificate_names import NamedCertificates  # loads cryptography

        def make_one(cert: bytes, key: bytes, number: int) -> TlsContext:
            return _context(tls, cert, key, f"{hostname}\n{number}\n")

        return NamedCertificates(tls, make_one)
    return _context(tls, tls.cert_pem, tls.key_pem.reveal_bytes(), f"{hostname}\n")


def _offered(tls: ServerTls) -> tuple[bytes, ...]:
    return tuple(name.encode() for name in NEGOTIATED) if tls.alpn is None else tls.alpn


def _context(tls: ServerTls, cert: bytes, key: bytes, owner: str) -> TlsContext:
    """Return a context with a certificate; `owner`: sessions are not resumed by another one."""
    return TlsContext(
        server=True,
        cert=cert,
        key=key,
        least=tls.versions[0],
        most=tls.versions[1],
        roots=tls.root_pem,
        strangers=tls.strangers,
        suites=tls.suites,
        groups=tls.groups,
        alpn=_offered(tls),
        # A session is resumed only where its client would be accepted in the same way.
        identity=hashlib.sha256(f"{owner}{tls.strangers}\n".encode() + (tls.root_pem or b"")).digest(),
        tickets=TICKETS.keys(),
    )


# What a listener has: a context, what makes one, or PASSTHROUGH.
Choice = TlsContext | ContextSource | str


class SniSelector:
    """Chooses a listener's certificate by SNI (RFC 6066 section 3).

    The order is: exact name, longest wildcard, listener without a host name. If no listener matches, the handshake is
    refused; where all listeners pass it on the connection ends without an alert, for the gateway speaks no TLS there.
    """

    def __init__(self) -> None:
        self._contexts: dict[str, TlsContext | ContextSource] = {}
        self._exact: dict[str, Choice] = {}
        self._wildcards: list[tuple[str, Choice]] = []
        self._default: Choice | None = None

    @classmethod
    def steps(
        cls, listeners: Iterable[Listener], previous: SniSelector | None = None
    ) -> Generator[None, None, SniSelector]:
        """Return the selector; one certificate, which takes half a millisecond, between two yields.

        `previous`: listeners that it has as well keep their contexts. Raises TlsError for what the library refuses.
        """
        made, before = cls(), {} if previous is None else previous._contexts
        for listener in listeners:
            if listener.tls is None:
                if listener.begins_with_tls:
                    made._add(listener.hostname, PASSTHROUGH)
            else:
                key = f"{listener.hostname}={listener.tls.key}"
                context = before.get(key) or server_context(listener.tls, listener.hostname)
                made._contexts[key] = context
                made._add(listener.hostname, context)
                yield
        made._wildcards.sort(key=lambda entry: -len(entry[0]))
        if not made._contexts and (made._exact or made._wildcards):
            made._default = PASSTHROUGH
        return made

    def _add(self, hostname: str | None, context: Choice) -> None:
        if hostname is None:
            self._default = context
        elif hostname.startswith("*."):
            self._wildcards.append((hostname[1:], context))
        else:
            self._exact[hostname] = context

    def find(self, name: str | None) -> TlsContext | asyncio.Task[TlsContext | TlsError] | str | None:
        """Return the context for an SNI name (None if the client sent none), or a task that makes it. PASSTHROUGH: the
        listener has no TLS of its own; None: no listener matches. Raises TlsError if the listener has no certificate
        for the name."""
        found = self._default
        if name is not None:
            found = self._exact.get(name) or self._wildcard(name)
        # In this order because it runs for each connection, and nearly each one finds a context.
        if isinstance(found, TlsContext) or found is None or isinstance(found, str):
            return found
        return found.find(name)

    def _wildcard(self, name: str) -> Choice | None:
        for suffix, context in self._wildcards:
            if name.endswith(suffix) and len(name) > len(suffix):
                return context
        return self._default


def client_context(tls: BackendTls) -> TlsContext:
    """Return the context for connections to a backend, without the trust anchors of the system.

    The trust anchors are `root_pem`, or the system's store if it is None; see ClientContext. `insecure` switches
    verification off, `insecure_host` and `subject_alt_names` only that of the host name. Raises TlsError for bad
    certificates or keys.
    """
    return TlsContext(
        server=False,
        cert=None if tls.client is None else tls.client.cert_pem,
        key=None if tls.client is None else tls.client.key.secret.reveal_bytes(),
        roots=None if tls.insecure else tls.root_pem,
        system_roots=tls.root_pem is None and not tls.insecure,
        groups=tls.groups,
        alpn=_asked(tls),
    )


def _asked(tls: BackendTls) -> tuple[bytes, ...]:
    return tuple(name.encode() for name in (DEFAULT_ALPN if tls.alpn is None else tls.alpn))


def approver(tls: BackendTls) -> Callable[[SecureTransport], None] | None:
    """Return what checks the names of a backend's certificate instead of the host's, None if there are none."""
    if tls.spiffe:
        from headgate.net.spiffe import approver as spiffe_approver

        return spiffe_approver(tls)
    if not tls.subject_alt_names:
        return None

    def check(transport: SecureTransport) -> None:
        der = transport.peer_certificate()
        identity = None if der is None else identity_of(der)
        if identity is None or not any(identity.has_name(name) for name in tls.subject_alt_names):
            raise HandshakeError("TLS: the certificate has none of the accepted subject alternative names")

    return check


class ClientContext:
    """The context for connections to backends with equal settings; only their hosts may differ.

    To read the trust store of the system takes 20 ms, which would hold the loop of a worker, and a megabyte. So it is
    read in a thread, before the first connection, and once for all backends.
    """

    __slots__ = ("__weakref__", "_context", "_reading", "_spiffe")

    def __init__(self, tls: BackendTls) -> None:
        self._reading: asyncio.Future[None] | None = None
        self._spiffe: SpiffeClient | None = None
        if tls.spiffe:
            from headgate.net.spiffe import SpiffeClient

            self._spiffe = SpiffeClient(tls, _asked(tls))
            return
        self._context = client_context(tls)

    @property
    def stays(self) -> bool:
        """Whether the context is the same for all connections."""
        return self._spiffe is None

    async def ready(self) -> TlsContext:
        """Return the context with its trust anchors. Raises HandshakeError if the gateway has no X.509-SVID."""
        if self._spiffe is not None:
            return await self._spiffe.ready()
        if self._context.lacks_roots:
            loop = asyncio.get_running_loop()
            if self._reading is None or self._reading.done() or self._reading.get_loop() is not loop:
                self._reading = loop.run_in_executor(None, read_system_roots)
            # Who waits may leave; others wait as well.
            await asyncio.shield(self._reading)
            self._context.trust_system()
            self._reading = None
        return self._context


_CONTEXTS: Final[WeakValueDictionary[str, ClientContext]] = WeakValueDictionary()


def shared_context(tls: BackendTls) -> ClientContext:
    """Return the context for settings, the one that is there while anybody holds it. Raises TlsError."""
    key = digest(replace(tls, hostname=None))
    found = _CONTEXTS.get(key)
    if found is None:
        found = _CONTEXTS[key] = ClientContext(tls)
    return found
