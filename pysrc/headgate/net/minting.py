"""Certificates that are made during the handshake, for the name that the client asks for (`mode: dynamicCa`).

Making one takes 1 ms, and 2.5 ms where the authority has an RSA key of 4096 bits. Keys and certificates stay in
the memory of the worker, which keeps the latest.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from headgate.crypto.certificate_authority import CertificateAuthority
from headgate.ir.tls import ServerTls
from headgate_engine.errors import TlsError
from headgate_engine.tls.context import TlsContext

MakeContext = Callable[[bytes, bytes, str], TlsContext]


class MintingListener:
    """The contexts of a listener by server name: at most `tls.minted_most`, the ones used last.

    `make(certificate, key, name)` makes one; `hostname` is that of the listener.
    """

    def __init__(self, tls: ServerTls, hostname: str | None, make: MakeContext) -> None:
        self._authority = CertificateAuthority(tls.cert_pem, tls.key_pem.reveal_bytes(), checked=True)
        self._make = make
        self._most = tls.minted_most
        self._kept_s = tls.minted_ms / 1000
        self._own = None if hostname is None or hostname.startswith("*") else hostname
        self._contexts: OrderedDict[str, tuple[TlsContext, float]] = OrderedDict()

    def find(self, name: str | None) -> TlsContext:
        """Return the context for a server name; without one, for the host name of the listener. Raises TlsError if
        there can be no certificate.
        """
        name = name or self._own
        if name is None:
            raise TlsError("the client asks for no name, and the listener has none for a certificate")
        now = time.monotonic()
        found = self._contexts.get(name)
        if found is None or found[1] <= now:
            found = self._made(name, now)
        self._contexts.move_to_end(name)
        return found[0]

    def __len__(self) -> int:
        return len(self._contexts)

    def _made(self, name: str, now: float) -> tuple[TlsContext, float]:
        try:
            pair = self._authority.issue(name)
        except ValueError as error:
            raise TlsError(str(error)) from None
        # The certificate of the authority may end soon.
        kept = min(self._kept_s, pair.expires - time.time())
        found = self._make(pair.cert_pem, pair.key_pem, name), now + kept
        self._contexts[name] = found
        while len(self._contexts) > self._most:
            self._contexts.popitem(last=False)
        return found
