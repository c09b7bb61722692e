"""Opens connections to backends, directly or through a proxy."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from headgate.ir.endpoint import Endpoint, Proxy, ProxyTunnel
from headgate.ir.process import UpstreamSettings
from headgate.net.dns import NameResolver
from headgate.net.race import first_connected
from headgate.net.sockets import set_keepalives
from headgate.net.tls import ClientContext, approver, shared_context
from headgate.net.tunnel import ProxyAnswer, TunnelError, TunnelRefused
from headgate_engine.link.handshake import HandshakeError, SecureClient
from headgate_engine.link.pool import Pool
from headgate_engine.link.secure import SecureTransport
from headgate_engine.tls.context import KeptSession, TlsContext

ProtocolFactory = Callable[[], asyncio.BaseProtocol]
Approver = Callable[[SecureTransport], None]
# The number of endpoints of one proxy that are tried for one connection.
MAX_TRIES: Final = 3
MS_PER_S: Final = 1000


class ProxySelector(Protocol):
    """Chooses among the endpoints of a proxy.

    `next` returns the endpoint to try; `avoid` is the one that failed just before. `note` records the outcome:
    the time in seconds that the proxy took to open the tunnel, or a negative number for a failure.
    """

    def next(self, avoid: Proxy | None) -> Proxy | None: ...
    def note(self, proxy: Proxy, seconds: float) -> None: ...


class SoleProxy:
    """The selector of a proxy that has only one endpoint."""

    def __init__(self, tunnel: ProxyTunnel) -> None:
        self._proxies = tunnel.proxies

    def next(self, avoid: Proxy | None) -> Proxy | None:
        """Return the only endpoint, or None if the proxy has none."""
        del avoid
        return self._proxies[0] if self._proxies else None

    def note(self, proxy: Proxy, seconds: float) -> None:
        """Do nothing, because there is no other endpoint to prefer."""


class ProxyAccess(Protocol):
    """How proxies are reached.

    `selector` makes the selector that chooses among the endpoints of a proxy. `fields` returns the headers (name,
    value) of a request for a tunnel to `authority`, after the policies of the proxy; it raises TunnelError if one of
    them refuses the tunnel.
    """

    def selector(self, tunnel: ProxyTunnel) -> ProxySelector: ...
    async def fields(self, tunnel: ProxyTunnel, authority: str) -> Sequence[tuple[str, str]]: ...


class PlainAccess:
    """Access to proxies that have one endpoint and no policies."""

    def selector(self, tunnel: ProxyTunnel) -> ProxySelector:
        """Return the selector of the only endpoint."""
        return SoleProxy(tunnel)

    async def fields(self, tunnel: ProxyTunnel, authority: str) -> Sequence[tuple[str, str]]:
        """Return no headers. Raises TunnelError if the proxy has policies, which nobody runs here."""
        if tunnel.policies is not None:
            raise TunnelError(f"the policies of the proxy are not ready for {authority}")
        return ()


class Dialer:
    """Opens connections to one endpoint: name resolution, TCP, TLS and keepalive, all within one time-out.

    `access` tells how the proxy is reached, if the endpoint has a tunnel; a proxy may have one as well. `mesh` is the
    pool of the place whose tunnels lead to the endpoint, if there is one. `header` is what connections begin with,
    before TLS (PROXY protocol); it is not for endpoints with a tunnel or in a mesh.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: UpstreamSettings,
        resolver: NameResolver,
        access: ProxyAccess | None = None,
        mesh: Pool | None = None,
    ) -> None:
        self.header = b""
        self._endpoint = endpoint
        self._mesh = mesh
        self._resolver = resolver
        timeout_ms = endpoint.connect_timeout_ms
        self._timeout = (settings.connect_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        self._keepalives = endpoint.keepalives or settings.keepalives
        self._context: ClientContext | None = None
        # That of `_context`, once it is ready.
        self._tls: TlsContext | None = None
        self._session: KeptSession | None = None
        self._server_name = ""
        self._check_name = True
        self._approve: Approver | None = None
        self._access = PlainAccess() if access is None else access
        # Whose turn it is of the places of a service; -1 before the first.
        self._turn = -1
        self._selector: ProxySelector | None = None
        self._proxies: dict[str, Dialer] = {}
        if endpoint.tunnel is not None:
            self._selector = self._access.selector(endpoint.tunnel)
            places = (one.endpoint for one in endpoint.tunnel.proxies)
            self._proxies = {place.key: Dialer(place, settings, resolver, access) for place in places}
        if endpoint.tls is not None:
            self._context = shared_context(endpoint.tls)
            # What is resumed is not verified again, and an X.509-SVID is soon another.
            self._session = KeptSession() if self._context.stays else None
            self._server_name = endpoint.tls.hostname or endpoint.host or "localhost"
            self._approve = approver(endpoint.tls)
            unchecked = endpoint.tls.insecure or endpoint.tls.insecure_host
            self._check_name = not unchecked and self._approve is None

    async def connect(self, factory: ProtocolFactory) -> None:
        """Open a transport for `factory()`. Raises OSError, or TimeoutError after the connect time-out."""
        async with asyncio.timeout(self._timeout) as limit:
            if self._context is not None and (self._tls is None or not self._context.stays):
                self._tls = await self._context.ready()
            if self._mesh is not None:
                await self._connect_in_mesh(factory, self._mesh)
                return
            if self._selector is not None and self._endpoint.tunnel is not None:
                await self._connect_through(factory, self._selector, self._endpoint.tunnel, limit)
                return
            if self._endpoint.unix_path is not None:
                await self._connect_unix(factory, self._endpoint.unix_path)
                return
            if self._endpoint.places is not None:
                await self._connect_place(factory, self._endpoint.places)
                return
            await self._connect_tcp(factory, await self._resolver.lookup(self._endpoint.host), self._endpoint.port)

    async def _connect_place(self, factory: ProtocolFactory, places: Sequence[tuple[str, int]]) -> None:
        """Connect to one of the places of a service, each in its turn. Behind one that is away the next is tried."""
        if not places:
            raise OSError(f"no endpoint of {self._endpoint.host} is ready")
        # Workers begin at different ones.
        self._turn = random.randrange(len(places)) if self._turn < 0 else self._turn + 1
        for step, last in enumerate(_last_flags(min(len(places), MAX_TRIES))):
            host, port = places[(self._turn + step) % len(places)]
            try:
                await self._connect_tcp(factory, await self._resolver.lookup(host), port)
            except HandshakeError:
                raise
            except OSError:
                if last:
                    raise
            else:
                return

    async def _connect_tcp(self, factory: ProtocolFactory, addresses: list[str], port: int) -> None:
        loop = asyncio.get_running_loop()
        secure = self._secured(factory)
        if len(addresses) == 1 and not self.header:
            transport, _ = await loop.create_connection(secure or factory, addresses[0], port)
        else:
            connected = await first_connected(addresses, port)
            try:
                self._begin(connected)
                transport, _ = await loop.create_connection(secure or factory, sock=connected)
            except BaseException:
                connected.close()
                raise
        sock = transport.get_extra_info("socket")
        if sock is not None and self._keepalives.enabled:
            set_keepalives(sock, self._keepalives)
        if secure is not None:
            await secure.opened()

    def _begin(self, connected: socket.socket) -> None:
        """Send the header. Raises OSError; a new connection has room for it."""
        if self.header and connected.send(self.header) != len(self.header):
            raise OSError("the PROXY protocol header could not be sent completely")

    def _secured(self, factory: ProtocolFactory) -> Handshake | None:
        """Return the TLS of one connection, None if the endpoint has none."""
        if self._tls is None:
            return None
        name, check_name = self._server_name, self._check_name
        return Handshake(SecureClient(self._tls, factory, name, check_name, self._approve, self._session))

    async def _connect_through(
        self, factory: ProtocolFactory, selector: ProxySelector, tunnel: ProxyTunnel, limit: asyncio.Timeout
    ) -> None:
        """Connect through an endpoint of the proxy.

        If one cannot be reached, the next one is tried: nothing has been sent to the backend yet.
        """
        proxy: Proxy | None = None
        for last in _last_flags(min(len(tunnel.proxies), MAX_TRIES)):
            proxy = selector.next(proxy)
            if proxy is None:
                break
            started = time.monotonic()
            try:
                answer = await self._asked(self._proxies[proxy.endpoint.key], tunnel)
            except TunnelRefused:
                # The proxy works. Another endpoint of it would give the same answer about the backend.
                selector.note(proxy, time.monotonic() - started)
                raise
            except OSError:
                selector.note(proxy, -1.0)
                if last:
                    raise
            except asyncio.CancelledError:
                # The connect time-out covers all attempts. If the caller has left, the proxy is not to blame.
                if limit.expired():
                    selector.note(proxy, -1.0)
                raise
            else:
                selector.note(proxy, time.monotonic() - started)
                await self._enter(factory, answer)
                return
        raise TunnelError("the service of the proxy has no endpoint")

    async def _asked(self, proxy: Dialer, tunnel: ProxyTunnel) -> ProxyAnswer:
        asked: list[ProxyAnswer] = []
        authority, policies = self._endpoint.address, tunnel.policies
        fields = () if policies is None else await self._access.fields(tunnel, authority)
        limit = None if policies is None else policies.request_timeout_ms

        def ask() -> ProxyAnswer:
            first = self._context is None and bool(self._endpoint.http2 or self._endpoint.tcp)
            asked.append(ProxyAnswer(authority, fields, speaks_first=first))
            return asked[-1]

        await proxy.connect(ask)
        answer = asked[-1]
        try:
            async with asyncio.timeout(None if limit is None else limit / MS_PER_S):
                await answer.opened()
        except BaseException:
            if answer.transport is not None:
                answer.transport.abort()
            raise
        return answer

    async def _enter(self, factory: ProtocolFactory, answer: ProxyAnswer) -> None:
        """Hand the connection that the proxy has opened to `factory()`, after TLS if needed. Raises OSError."""
        transport: asyncio.Transport | None = answer.transport
        secure = self._secured(factory)
        try:
            if answer.lost or transport is None or transport.is_closing():
                raise TunnelError("the proxy closed the connection")
        except BaseException:
            if transport is not None:
                transport.abort()
            raise
        answer.hand_over((secure or factory)())
        if secure is not None:
            await secure.opened()

    async def _connect_in_mesh(self, factory: ProtocolFactory, place: Pool) -> None:
        from headgate_engine.link.mesh_tunnel import MeshTunnel

        tunnel = MeshTunnel(place, self._endpoint.address)
        await tunnel.opened()
        secure = self._secured(factory)
        if tunnel.is_closing():
            raise TunnelError("the workload ended the tunnel")
        protocol: Any = (secure or factory)()
        tunnel.set_protocol(protocol)
        protocol.connection_made(tunnel)
        if secure is not None:
            await secure.opened()

    async def _connect_unix(self, factory: ProtocolFactory, path: str) -> None:
        secure = self._secured(factory)
        loop = asyncio.get_running_loop()
        if self.header:
            connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connected.setblocking(False)
                await loop.sock_connect(connected, path)
                self._begin(connected)
                await loop.create_unix_connection(secure or factory, sock=connected)
            except BaseException:
                connected.close()
                raise
        else:
            await loop.create_unix_connection(secure or factory, path)
        if secure is not None:
            await secure.opened()


class Handshake:
    """The TLS of one connection to a backend, as a factory of its protocol."""

    def __init__(self, client: SecureClient) -> None:
        self._client = client

    def __call__(self) -> Any:
        """Return the protocol of the loop's transport."""
        return self._client

    async def opened(self) -> None:
        """Return when the protocol of the application has its transport. Raises OSError."""
        await self._client.opened()


def _last_flags(count: int) -> list[bool]:
    return [index == count - 1 for index in range(count)]
