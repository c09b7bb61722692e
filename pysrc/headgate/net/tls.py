"""TLS contexts for listeners and for backends, created once per configuration."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from weakref import WeakValueDictionary

from headgate.ir.digest import digest
from headgate.ir.listener import Listener
from headgate.ir.tls import BackendTls, ServerTls

DEFAULT_ALPN = ("http/1.1",)
SERVER_ALPN = ("h2", "http/1.1")
VERSIONS = {"TLS_V1_2": ssl.TLSVersion.TLSv1_2, "TLS_V1_3": ssl.TLSVersion.TLSv1_3}

logger = logging.getLogger("headgate.tls")


def _load_pair(context: ssl.SSLContext, cert_pem: bytes, key_pem: bytes) -> None:
    """Load a certificate and key from memory.

    The `ssl` module reads files only, so the key is written to an anonymous memory file (memfd_create(2)).
    """
    descriptor = os.memfd_create("headgate-tls", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(cert_pem + b"\n" + key_pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _bound(context: ssl.SSLContext, tls: ServerTls | None) -> None:
    """Set the TLS versions of a context. All listeners of a port have the same versions."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls is not None:
        context.minimum_version, context.maximum_version = (VERSIONS[word] for word in tls.versions)


def server_context(tls: ServerTls) -> ssl.SSLContext:
    """Return the context of one listener (ALPN `h2`, `http/1.1`). Raises ssl.SSLError for a bad certificate or key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _bound(context, tls)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(list(SERVER_ALPN))
    _load_pair(context, tls.cert_pem, tls.key_pem.reveal_bytes())
    return context


class SniSelector:
    """Chooses a listener's certificate by SNI (RFC 6066 section 3).

    The order is: exact name, longest wildcard, listener without a host name. If no listener matches, the handshake is
    refused.
    """

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._exact: dict[str, ssl.SSLContext] = {}
        self._wildcards: list[tuple[str, ssl.SSLContext]] = []
        self._default: ssl.SSLContext | None = None
        self._tls: ServerTls | None = None
        for listener in listeners:
            if listener.tls is None:
                continue
            self._tls = listener.tls
            context = server_context(listener.tls)
            if listener.hostname is None:
                self._default = context
            elif listener.hostname.startswith("*."):
                self._wildcards.append((listener.hostname[1:], context))
            else:
                self._exact[listener.hostname] = context
        self._wildcards.sort(key=lambda entry: -len(entry[0]))

    def find(self, name: str | None) -> ssl.SSLContext | None:
        """Return the context for an SNI name (None if the client sent none), or None if no listener matches."""
        if name is not None:
            name = name.lower()
            if name in self._exact:
                return self._exact[name]
            for suffix, context in self._wildcards:
                if name.endswith(suffix) and len(name) > len(suffix):
                    return context
        return self._default

    def accept_context(self) -> ssl.SSLContext:
        """Return the context with which a port starts handshakes; its SNI callback switches to the listener's."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _bound(context, self._tls)
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(list(SERVER_ALPN))
        context.sni_callback = self._on_sni
        return context

    def _on_sni(self, connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> int | None:
        chosen = self.find(name)
        if chosen is None:
            logger.debug("TLS handshake refused", extra={"tls.sni": name or "", "error": "no listener has this name"})
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        connection.context = chosen
        connection.requested_name = name  # type: ignore[attr-defined]  # for `destination.hostname`
        return None


def client_context(tls: BackendTls) -> ssl.SSLContext:
    """Return the context for connections to a backend, without the trust anchors of the system.

    The trust anchors are `root_pem`, or the system's store if it is None; see ClientContext. `insecure` switches
    verification off, `insecure_host` only that of the host name. Raises ssl.SSLError for bad certificates or keys.
    """
    if tls.root_pem is not None:
        context = ssl.create_default_context(cadata=tls.root_pem.decode("ascii", "ignore"))
    else:
        # As create_default_context(), which reads the system's store.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if keys := os.environ.get("SSLKEYLOGFILE"):
            context.keylog_filename = keys
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.insecure_host:
        context.check_hostname = False
    context.set_alpn_protocols(list(tls.alpn or DEFAULT_ALPN))
    if tls.client is not None:
        _load_pair(context, tls.client.cert_pem, tls.client.key.secret.reveal_bytes())
    return context


class ClientContext:
    """The context for connections to backends with equal settings; only their hosts may differ.

    To read the trust store of the system takes 20 ms, which would hold the loop of a worker, and a megabyte. So it is
    read in a thread, before the first connection, and once for all backends that share the context.
    """

    __slots__ = ("__weakref__", "_context", "_lacks_store", "_reading")

    def __init__(self, tls: BackendTls) -> None:
        self._context = client_context(tls)
        self._lacks_store = tls.root_pem is None and not tls.insecure
        self._reading: asyncio.Future[None] | None = None

    async def ready(self) -> ssl.SSLContext:
        """Return the context with its trust anchors. Raises OSError."""
        if self._lacks_store:
            loop = asyncio.get_running_loop()
            if self._reading is None or self._reading.done() or self._reading.get_loop() is not loop:
                self._reading = loop.run_in_executor(None, self._context.load_default_certs)
            # Who waits may leave; others wait as well.
            await asyncio.shield(self._reading)
            self._lacks_store, self._reading = False, None
        return self._context


_CONTEXTS: Final[WeakValueDictionary[str, ClientContext]] = WeakValueDictionary()


def shared_context(tls: BackendTls) -> ClientContext:
    """Return the context for settings, the one that is there while anybody holds it. Raises ssl.SSLError."""
    key = digest(replace(tls, hostname=None))
    found = _CONTEXTS.get(key)
    if found is None:
        found = _CONTEXTS[key] = ClientContext(tls)
    return found
