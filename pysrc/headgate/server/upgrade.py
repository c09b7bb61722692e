"""The supervisor's part in an upgrade: as the process whose place is taken, and as the one that takes it."""

from __future__ import annotations

import logging
import os

from headgate.admin.running import RunningGateway, UpgradeRefused
from headgate.admin.servers import AdminServers
from headgate.config.load import FileSource, Loaded, Source
from headgate.net.sockets import LentSocket
from headgate.net.tasks import spawn
from headgate.server.activation import lent_servers, lent_sockets
from headgate.server.handover import LENT, PORT, HandedSocket, Handover
from headgate.server.predecessor import Predecessor
from headgate.server.service_manager import ServiceManager
from headgate.server.successor import Successor, obstacle
from headgate.server.template_handle import TemplateHandle
from headgate.server.worker_care import WorkerCare
from headgate.server.worker_pool import WorkerSecrets, session_key
from headgate_engine.shared.segment import Segment

logger = logging.getLogger("headgate.supervisor")


class Upgradable(WorkerCare):
    """A supervisor that can take another one's place and give its own."""

    source: Source
    _admin: AdminServers
    _running: RunningGateway
    _service: ServiceManager

    def __init__(self, loaded: Loaded, segment: Segment, template: TemplateHandle, workers: int) -> None:
        super().__init__(loaded, segment, template, workers)
        self._predecessor: Predecessor | None = None
        self._successor: Successor | None = None
        # Ports at which another process of the gateway accepts already.
        self._handed: frozenset[str] = frozenset()
        # What is in flight has the time that any end gives it.
        self._hurried = False

    @property
    def _delivered(self) -> bool:
        """Whether the configuration comes from a controller."""
        raise NotImplementedError

    def stop(self, why: str) -> None:
        """Drain and exit."""
        raise NotImplementedError

    def succeed(self, predecessor: Predecessor) -> None:
        """Take the place of another process of the gateway, with its sockets and secrets."""
        self._predecessor = predecessor
        key = session_key(self.gateway, predecessor.handover.session_key)
        self._secrets = WorkerSecrets(key, predecessor.handover.tickets)

    def _take_sockets(self) -> None:
        """Find what others have opened for this process, and bind the operator's ports. Raises ReloadFailed,
        OSError."""
        lent, servers = lent_sockets(os.environ), []
        if self._predecessor is not None:
            lent, servers = self._predecessor.lent(), self._predecessor.servers()
            self._sockets.inherit(self._predecessor.ports())
        self._sockets.borrow(lent, None if self._delivered else self.gateway)
        self._admin.bind(self.gateway.process, [*servers, *lent_servers(lent, self.gateway.process)])

    async def upgrade(self) -> int:
        """Have a new process take the place of this one, which then drains; return its id. Raises UpgradeRefused, after
        which the gateway goes on as it was.
        """
        why = self._no_upgrade()
        if why:
            raise UpgradeRefused(why)
        async with self._reload_lock:
            why = self._no_upgrade()
            if why:
                raise UpgradeRefused(why)
            logger.info("upgrade begins")
            self._successor = successor = Successor.start(self._handover(), self._service.environment)
            try:
                ready = await successor.ready()
            finally:
                self._successor = None
            if self._stopping:
                await successor.end()
                raise UpgradeRefused("the gateway ends")
            logger.info("upgraded", extra={"pid": ready.pid})
            self._service.hand_over(ready.pid)
            successor.go()
            own = self._sockets.by_key.items()
            self._handed = ready.taken | {key for key, sock in own if isinstance(sock, LentSocket)}
            self.stop("upgrade")
            return ready.pid

    def _no_upgrade(self) -> str:
        """Return why no other process can take the place of this one now, "" if one can."""
        if self._stopping:
            return "the gateway ends"
        if self._running.pending:
            return "the gateway has not started yet"
        if self._successor is not None:
            return "an upgrade is under way"
        if self._delivered:
            return "its configuration comes from a controller, which replaces gateways itself"
        if isinstance(self.source, FileSource) and self.source.is_stream:
            return "its configuration came from standard input, which cannot be read twice"
        return obstacle(os.environ, self._service.listens)

    def _handover(self) -> Handover:
        ports = [
            HandedSocket(PORT, key, sock)
            for key, sock in self._sockets.by_key.items() if not isinstance(sock, LentSocket)
        ]  # fmt: skip
        lent = [HandedSocket(LENT, one.name, one.sock) for one in self._sockets.lent]
        servers = [HandedSocket(name, name, sock) for name, sock in self._admin.sockets()]
        return Handover([*ports, *lent, *servers], self._secrets.session_key, self._secrets.tickets())

    def _on_upgrade(self) -> None:
        """Handle SIGUSR2."""

        async def upgrade() -> None:
            try:
                await self.upgrade()
            except UpgradeRefused as error:
                for line in str(error).splitlines():
                    logger.error("upgrade refused", extra={"error": line})

        spawn("upgrade", upgrade())
