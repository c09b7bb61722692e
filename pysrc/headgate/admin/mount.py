"""The admin page behind the gateway's own listeners (section `ui` of the configuration).

Workers forward requests over Unix sockets in a folder that only this user can enter, one socket per kind of access
(`UiBackend.access`). These sockets serve a table of their own. Endpoints that exist only on the admin port (levels,
profiles, traces, shutdown) are not in this table, so no spelling of a path can reach them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Final

from headgate.admin import origins
from headgate.admin.answers import as_json
from headgate.admin.api import UI_API, ui_rows
from headgate.admin.mount_points import mounts
from headgate.admin.routes import admin_rows
from headgate.admin.running import RunningGateway
from headgate.admin.web import (
    FOREIGN,
    IDLE_SECONDS,
    AdminRequest,
    AdminResponse,
    AdminRoute,
    AdminStream,
    WebServer,
    refused_kind,
)
from headgate.config.ui_route import PREFIXES
from headgate.ir.backend import UiAccess
from headgate.ir.gateway import Gateway
from headgate_engine.steps.cors import OriginRule

READ: Final = ("GET", "HEAD")
READ_ONLY: Final = "without a login the page is read-only: give the section ui a policy that requires a credential"
WRONG_NAME: Final = (
    b"without a login the page answers to localhost and addresses only: give the listener a hostname, or the section "
    b"ui a policy that asks for a credential\n"
)


def mount_rows(running: RunningGateway, access: UiAccess) -> tuple[AdminRoute, ...]:
    """Return the table: the page, and the paths that the section claims."""
    claimed = [row for row in admin_rows(running) if _claimed(row.path)]
    # Expressions, requests through the gateway, and its configuration and request log need a login.
    return (*ui_rows(running, ("expressions", "relay", "store") if access == "login" else ()), *claimed)


def _claimed(path: str) -> bool:
    if path.startswith(UI_API):
        return False
    return path == "/" or any(path == one or path.startswith(f"{one}/") for one in PREFIXES)


class MountServer(WebServer):
    """Serves the table for one kind of access. `rules` returns the origins that the section's `cors` admits."""

    def __init__(
        self, table: Callable[[], tuple[AdminRoute, ...]], access: UiAccess, rules: Callable[[], tuple[OriginRule, ...]]
    ) -> None:
        super().__init__(table)
        self._access = access
        self._rules = rules
        # Workers stream request bodies, so a request can take as long as its client.
        self._head_seconds = IDLE_SECONDS

    async def _answer(self, request: AdminRequest) -> AdminResponse | AdminStream:
        if self._access == "open" and not origins.is_local_name(request.host):
            return AdminResponse(421, WRONG_NAME)
        rows = self.fitting(request.path)
        to_page = request.method in READ and any(row.page for row in rows)
        if origins.is_foreign_behind(request.headers, request.host, to_page):
            origin = request.headers.get("origin", "").encode("latin-1")
            if not origin or not any(rule.admits(origin) for rule in self._rules()):
                return AdminResponse(403, FOREIGN)
        if rows and self._access != "login" and request.method not in READ:
            return as_json(403, READ_ONLY)
        return refused_kind(rows, request) or await self._dispatch(rows, request)


class Mounts:
    """The servers for all kinds of access; each one starts with the first configuration that needs it."""

    def __init__(self, running: RunningGateway, folder: str) -> None:
        self._running = running
        self._folder = folder
        self._servers: dict[UiAccess, MountServer] = {}
        self._known: tuple[str, tuple[OriginRule, ...]] = ("", ())

    async def open(self, gateway: Gateway) -> None:
        """Start the servers that a configuration needs, before workers use it; raises OSError."""
        for *_, backend in mounts(gateway):
            if backend.access not in self._servers:
                table = partial(mount_rows, self._running, backend.access)
                server = MountServer(table, backend.access, self._rules)
                path = backend.socket_path(self._folder)
                await server.listen_unix(path)
                os.chmod(path, 0o600)
                self._servers[backend.access] = server

    def _rules(self) -> tuple[OriginRule, ...]:
        gateway = self._running.gateway
        if self._known[0] != gateway.digest:
            found = {
                origin
                for _, listener, route, _ in mounts(gateway)
                for cors in (route.policies.cors, listener.policies.cors)
                if cors is not None
                for origin in cors.origins
            }
            self._known = (gateway.digest, tuple(OriginRule(one) for one in sorted(found)))
        return self._known[1]

    async def close(self) -> None:
        """Close all servers."""
        for server in self._servers.values():
            await server.close()
