"""The admin, stats and readiness servers of a process."""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import socket
import stat
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from headgate.admin.mount_points import mount_url, mounts
from headgate.admin.running import STARTING, RunningGateway
from headgate.ir.gateway import Gateway
from headgate.ir.process import ListenAddress, ProcessSettings
from headgate.net.sockets import bind_socket, listens_at

if TYPE_CHECKING:  # loaded only if a server is configured, and once traffic is served
    from headgate.admin.mount import Mounts
    from headgate.admin.web import AdminRoute, WebServer

IPV6 = 6
logger = logging.getLogger("headgate.admin")


OPEN = "anyone who can reach the admin server can write the configuration; config.storage.mode: readOnly prevents that"


def preload(settings: ProcessSettings) -> None:
    """Load what serves the configured ports, and what probes and scrapes of metrics ask for again and again.

    A process that does so after it has forked writes to memory that it shares, of which 3 MB more are then its own.
    """
    if not settings.admin.off:
        import_module("headgate.admin.web")
    if not settings.stats.off:
        import_module("headgate.admin.stats")
    if not settings.readiness.off:
        import_module("headgate.admin.readiness")


class AdminServers:
    """Starts and stops the three servers. `running` is the gateway that they show; `folder` holds the Unix sockets, and
    only processes of this user can enter it.
    """

    def __init__(self, running: RunningGateway, folder: str) -> None:
        self._running = running
        self._folder = folder
        self._mounts: Mounts | None = None
        self._servers: list[WebServer] = []
        self._bound: dict[str, list[socket.socket]] = {}

    def bind(self, settings: ProcessSettings, handed: Iterable[tuple[str, socket.socket]] = ()) -> None:
        """Take the configured ports, so that nothing but start() is left to do once traffic is served. `handed`:
        listening sockets of a gateway whose place this one takes, or of a service manager, with the names of their
        servers; those that are not configured are closed. Raises OSError, whose message names the server.
        """
        left = list(handed)
        for name, address in configured(settings).items():
            try:
                self._bound[name] = _bind(address, [one for one in left if one[0] == name])
            except OSError as error:
                raise _unusable(name, address, error) from error
        used = [sock for socks in self._bound.values() for sock in socks]
        for _, sock in left:
            if sock not in used:
                sock.close()

    def sockets(self) -> list[tuple[str, socket.socket]]:
        """Return the listening sockets, with the names of their servers."""
        return [(name, sock) for name, socks in self._bound.items() for sock in socks]

    async def start(self, settings: ProcessSettings) -> None:
        """Serve at the configured ports; the gateway is then ready. Raises OSError, whose message names the server."""
        wanted = configured(settings)
        for name in sorted({"admin", "stats", "readiness"} - wanted.keys()):
            logger.info("server is off", extra={"server": name})
        if not self._bound:
            self.bind(settings)
        if wanted:
            await self._open(wanted)
        url = mount_url(self._running.gateway) or (page_url(settings.admin) if settings.admin.hosts else None)
        if url is not None:
            logger.info("admin page", extra={"url": url})
        self._running.pending.difference_update(STARTING)

    async def _open(self, wanted: dict[str, ListenAddress]) -> None:
        from headgate.admin.web import WebServer

        admin = wanted.get("admin")
        servers = {
            "admin": WebServer(self._admin_rows, self._origins, _is_private(admin)),
            "stats": WebServer(self._stats_rows, self._origins, _is_private(wanted.get("stats"))),
            "readiness": WebServer(self._readiness_rows, proxy_protocol=True),
        }
        for name, address in wanted.items():
            self._servers.append(servers[name])
            try:
                for sock in self._bound[name]:
                    await servers[name].serve_at(sock)
            except OSError as error:
                raise _unusable(name, address, error) from error
        if admin is not None and not _is_private(admin):
            from headgate.admin.configuration import store_mode

            if store_mode(self._running) != "readOnly":
                logger.warning(OPEN, extra={"address": admin.text})

    # Loaded with the first request: what the admin server alone has takes 4 MB.
    def _admin_rows(self) -> tuple[AdminRoute, ...]:
        from headgate.admin.routes import admin_rows

        return admin_rows(self._running)

    def _stats_rows(self) -> tuple[AdminRoute, ...]:
        from headgate.admin.stats import stats_rows

        return stats_rows(self._running)

    def _readiness_rows(self) -> tuple[AdminRoute, ...]:
        from headgate.admin.readiness import readiness_rows

        return readiness_rows(self._running)

    async def mount(self, gateway: Gateway) -> None:
        """Start the admin page for the listeners of a configuration; raises OSError."""
        if self._mounts is None:
            if not any(mounts(gateway)):
                return
            from headgate.admin.mount import Mounts

            self._mounts = Mounts(self._running, self._folder)
        await self._mounts.open(gateway)

    def _origins(self) -> frozenset[str]:
        return frozenset(self._running.gateway.process.admin_origins)

    def stop_accepting(self) -> None:
        """Close the listening sockets; open connections continue."""
        for server in self._servers:
            server.stop_accepting()

    async def stop(self) -> None:
        """Stop accepting and close open connections."""
        for server in self._servers:
            await server.close()
        if self._mounts is not None:
            await self._mounts.close()


def configured(settings: ProcessSettings) -> dict[str, ListenAddress]:
    """Return where the servers that are not off listen, by their names."""
    addresses = {"admin": settings.admin, "stats": settings.stats, "readiness": settings.readiness}
    return {name: address for name, address in addresses.items() if not address.off}


def page_url(address: ListenAddress) -> str:
    """Return the URL of the page for a browser on this machine."""
    host = ipaddress.ip_address(address.hosts[0])
    name = "localhost" if host.is_unspecified else f"[{host}]" if host.version == IPV6 else str(host)
    return f"http://{name}:{address.port}/ui"


def _is_private(address: ListenAddress | None) -> bool:
    """Return True if only this machine reaches the address."""
    return address is not None and (
        address.unix_path is not None or all(ipaddress.ip_address(host).is_loopback for host in address.hosts)
    )


def _unusable(name: str, address: ListenAddress, error: OSError) -> OSError:
    taken = f" (set config.{name}Addr to another address, or to off)" if error.errno == errno.EADDRINUSE else ""
    return OSError(f"{name} server: cannot listen on {address.text}: {error.strerror or error}{taken}")


def _bind(address: ListenAddress, handed: list[tuple[str, socket.socket]]) -> list[socket.socket]:
    if address.unix_path is None:
        found = []
        for host in address.hosts:
            same = (sock for _, sock in handed if listens_at(sock, host, address.port))
            found.append(next(same, None) or bind_socket(host, address.port, shared=False))
        return found
    for _, sock in handed:
        if sock.family == socket.AF_UNIX and sock.getsockname() == address.unix_path:
            return [sock]
    _clear(address.unix_path)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(address.unix_path)
    return [sock]


def _clear(path: str) -> None:
    """Remove a socket that an earlier process left over; any other file is left alone."""
    if os.path.exists(path):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise FileExistsError(0, f"{path} exists and is not a socket")
        os.unlink(path)
