"""Certificates that are made during the handshake, for the name that the client asks for (`mode: dynamicCa`).

Making one takes 1 ms, and 2.5 ms where the authority has an RSA key of 4096 bits. With such a long key a thread signs,
and the handshake waits for it (link.handshake). Keys and certificates stay in the memory of the worker, which keeps the
latest.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from headgate.crypto.certificate_authority import CertificateAuthority, IssuedPair
from headgate.ir.tls import ServerTls
from headgate.net.tasks import spawn
from headgate_engine.errors import TlsError
from headgate_engine.tls.context import TlsContext

MakeContext = Callable[[bytes, bytes, str], TlsContext]
# Certificates of a listener that threads are making at a time. Handshakes for others are refused.
MOST_AT_A_TIME: Final = 64


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
        self._signing: dict[str, asyncio.Task[TlsContext | TlsError]] = {}

    def find(self, name: str | None) -> TlsContext | asyncio.Task[TlsContext | TlsError]:
        """Return the context for a server name; without one, for the host name of the listener. Returns a task while a
        thread makes it, whose result may be the error. Raises TlsError if there can be no certificate.
        """
        name = name or self._own
        if name is None:
            raise TlsError("the client sent no server name, and the listener has no host name for a certificate")
        now = time.monotonic()
        found = self._contexts.get(name)
        if found is None or found[1] <= now:
            if self._authority.slow:
                return self._signed(name)
            try:
                found = self._kept(name, self._authority.issue(name))
            except ValueError as error:
                raise TlsError(str(error)) from None
        self._contexts.move_to_end(name)
        return found[0]

    def _signed(self, name: str) -> asyncio.Task[TlsContext | TlsError]:
        task = self._signing.get(name)
        if task is None:
            if len(self._signing) >= MOST_AT_A_TIME:
                raise TlsError("too many certificates are being issued")
            task = self._signing[name] = spawn("certificate", self._sign(name))
        return task

    async def _sign(self, name: str) -> TlsContext | TlsError:
        try:
            # The library lets go of the GIL while it signs.
            pair = await asyncio.to_thread(self._authority.issue, name)
            return self._kept(name, pair)[0]
        except ValueError as error:
            return TlsError(str(error))
        except TlsError as error:
            return error
        finally:
            del self._signing[name]

    def __len__(self) -> int:
        return len(self._contexts)

    def _kept(self, name: str, pair: IssuedPair) -> tuple[TlsContext, float]:
        # The certificate of the authority may end soon.
        kept = min(self._kept_s, pair.expires - time.time())
        found = self._make(pair.cert_pem, pair.key_pem, name), time.monotonic() + kept
        self._contexts[name] = found
        self._contexts.move_to_end(name)
        while len(self._contexts) > self._most:
            self._contexts.popitem(last=False)
        return found
