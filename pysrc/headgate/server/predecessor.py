"""The running gateway whose place this process takes, as this process sees it (server/successor: the other side)."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Iterable, MutableMapping
from typing import Final

from headgate.net.sockets import LentSocket
from headgate.server.activation import Lent, lent_at
from headgate.server.handover import (
    LENT,
    PORT,
    VARIABLE,
    Handover,
    HandoverFailed,
    read_packet,
    ready_packets,
    receive_handover,
)

logger = logging.getLogger("headgate.supervisor")

# What is handed over is written as soon as this process has been started.
HANDOVER_SECONDS: Final = 10.0
# How long the predecessor may take to say that it drains.
GO_SECONDS: Final = 30.0
MAX_REASON: Final = 8192
MAX_ANSWER: Final = 1024


class Predecessor:
    """The channel to it, and what it has handed over."""

    def __init__(self, channel: socket.socket, handover: Handover) -> None:
        self._channel = channel
        self.handover = handover

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> Predecessor | None:
        """Return the predecessor in `environ`, None if there is none. Reports and raises HandoverFailed."""
        text = environ.pop(VARIABLE, "")
        if not text:
            return None
        try:
            channel = socket.socket(fileno=int(text))
            channel.set_inheritable(False)
            channel.settimeout(HANDOVER_SECONDS)
        except (OSError, ValueError) as error:
            raise HandoverFailed(f"{VARIABLE}={text!r} is not a socket: {error}") from None
        try:
            return cls(channel, receive_handover(channel))
        except (OSError, HandoverFailed) as error:
            _refuse(channel, str(error))
            raise HandoverFailed(str(error)) from None

    def ports(self) -> list[Lent]:
        """Return the sockets of ports that belonged to the predecessor."""
        return [lent_at(one.name, one.sock) for one in self.handover.sockets if one.use == PORT]

    def lent(self) -> list[Lent]:
        """Return the sockets that a service manager had lent to the predecessor."""
        own = (one for one in self.handover.sockets if one.use == LENT)
        return [lent_at(one.name, LentSocket(fileno=one.sock.detach())) for one in own]

    def servers(self) -> list[tuple[str, socket.socket]]:
        """Return the sockets of the operator's servers, with their names."""
        return [(one.use, one.sock) for one in self.handover.sockets if one.use not in (PORT, LENT)]

    def refuse(self, why: str) -> None:
        """Tell why this process cannot take its place, and hang up."""
        _refuse(self._channel, why)

    def forget(self) -> None:
        """Let go of sockets that the template has closed: in a worker their numbers are others' now."""
        for sock in (self._channel, *(one.sock for one in self.handover.sockets)):
            sock.detach()

    async def take_over(self, taken: Iterable[str]) -> None:
        """Tell that this process serves at the ports `taken`, and return when the predecessor takes nothing new.

        If it is not there any more, this process goes on by itself.
        """
        loop = asyncio.get_running_loop()
        self._channel.setblocking(False)
        try:
            for packet in ready_packets(taken):
                await loop.sock_sendall(self._channel, packet)
            async with asyncio.timeout(GO_SECONDS):
                read_packet(await loop.sock_recv(self._channel, MAX_ANSWER))
        except (OSError, HandoverFailed) as error:
            logger.warning("the running gateway does not answer", extra={"error": str(error)})
        self._channel.close()


def _refuse(channel: socket.socket, why: str) -> None:
    try:
        channel.send(json.dumps({"refused": why[:MAX_REASON]}).encode())
    except OSError as error:
        logger.warning("the running gateway cannot be notified", extra={"error": str(error)})
    channel.close()
