"""Relays requests between workers over Unix sockets, for sessions that belong to another worker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.relay import Relay, RelayEnd, socket_path, workers_in
from headgate.backend.mcp.session import SessionIds
from headgate_engine.context.paths import MODES
from headgate_engine.http1.receiver import ReceiverLimits
from headgate_engine.link.client import HttpClient
from headgate_engine.link.handler import HandlerBackend
from headgate_engine.link.pool import Pool
from headgate_engine.link.protocols import CLIENTS, HTTP1, connection_factory
from headgate_engine.link.worker import Worker
from headgate_engine.plan.plans import BackendPlan, BindPlan, ListenerPlan, RoutePlan
from headgate_engine.route.table import RouteRule, RouteTable

BIND = "relay"
# What a front let through may be relayed: the front has already bounded it.
MAX_BODY = 64 * 1024 * 1024
# A relayed request has the client's fields, of whatever size its listener allows, and what expressions know of it.
LIMITS = ReceiverLimits(max_head=16 * 1024 * 1024, max_headers=65_536, max_start_line=1024 * 1024)
# How long a request waits for a worker that is started again.
PATIENCE_SECONDS = 15.0
RETRY_SECONDS = 0.05


class WorkerRelay:
    """The sockets of one worker. `find` gives the handler of a relayed backend key."""

    def __init__(
        self,
        worker: Worker,
        folder: str,
        ids: SessionIds,
        find: Callable[[str], Callable[[BackendCall], Awaitable[None]] | None],
    ) -> None:
        self._worker = worker
        self._folder = folder
        self._clients: dict[tuple[int, bool], HttpClient] = {}
        self._server: asyncio.Server | None = None
        self.relay = Relay(worker.index, ids, self._client, self._others, folder)
        self._end = RelayEnd(find, self.relay)

    async def start(self) -> None:
        """Begin to accept relayed requests, unless already started."""
        if self._server is not None:
            return
        backend = BackendPlan(BIND, "mcp", HandlerBackend(self._worker, BIND, self._end.handle))
        backend.max_body = MAX_BODY
        route = RoutePlan(BIND, "internal", "", (backend,), (1,))
        plan = BindPlan(BIND, LIMITS)
        plan.untraced = True
        # The worker that relays a request has settled its path and its fields.
        plan.path_mode, plan.keeps_underscores = MODES["keep"], True
        plan.sole_listener = ListenerPlan(BIND, BIND, "internal", RouteTable([RouteRule(target=route)]))
        self._worker.set_bind(BIND, plan)
        path = socket_path(self._folder, self._worker.index)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(connection_factory(self._worker, BIND), path)

    def close(self) -> None:
        """Stop taking relayed requests."""
        if self._server is not None:
            self._server.close()

    def _others(self) -> list[int]:
        """Return the workers that accept relayed requests. Some of them may have stopped meanwhile."""
        return workers_in(self._folder)

    def _client(self, index: int, patient: bool) -> HttpClient:
        client = self._clients.get((index, patient))
        if client is None:
            path = socket_path(self._folder, index)

            async def connect(factory: Callable[[], asyncio.BaseProtocol]) -> None:
                until = time.monotonic() + (PATIENCE_SECONDS if patient else 0.0)
                while True:
                    try:
                        await asyncio.get_running_loop().create_unix_connection(factory, path)
                        return
                    except (ConnectionRefusedError, FileNotFoundError):
                        # Nobody listens: nothing has been sent, and the worker is perhaps being started again.
                        if time.monotonic() >= until:
                            raise
                    await asyncio.sleep(RETRY_SECONDS)

            name = f"relay/{index}/patient" if patient else f"relay/{index}"
            pool = Pool(self._worker, name, f"worker-{index}".encode(), connect, CLIENTS[HTTP1](self._worker))
            client = self._clients[index, patient] = HttpClient(pool, "localhost")
        return client
