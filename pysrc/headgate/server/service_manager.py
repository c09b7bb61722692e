"""Tells a service manager (systemd) how the gateway is: sd_notify(3), without its library.

The manager names a datagram socket in NOTIFY_SOCKET, and with WATCHDOG_USEC it kills a gateway that says nothing for so
long. https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Final

from headgate.server.heartbeat import BEAT_SECONDS
from headgate.server.ready_descriptor import tell_ready

logger = logging.getLogger("headgate.supervisor")

# The gateway says once a second that it lives: a manager that waits for less would kill one that is well.
LEAST_WATCHDOG_SECONDS: Final = 2 * BEAT_SECONDS
VARIABLES: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
MICROSECONDS: Final = 1_000_000


class ServiceManager:
    """Whoever has started the gateway, as the supervisor sees it; says nothing where nobody listens.

    Takes its variables out of `environ`: processes that the gateway starts are not meant.
    """

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        address, usec, pid = (environ.pop(name, "") for name in VARIABLES)
        # What a process that takes the place of this one needs to speak to the manager: it is the one that is watched.
        told = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": usec}
        self.environment = {name: value for name, value in told.items() if value}
        self._address = _address(address)
        self._watched = _watched(usec, pid)
        self._reloading = 0
        self._stopping = False
        self._failed = False

    def ready(self, status: str) -> None:
        """Tell that the gateway serves traffic. `status`: a sentence for `systemctl status`."""
        tell_ready()
        self._send("READY=1", f"STATUS={status}")

    @contextlib.contextmanager
    def reloading(self, status: Callable[[], str]) -> Iterator[None]:
        """Tell that a reload begins, and afterwards that the gateway is ready, with what `status` then returns."""
        if self._stopping:
            yield
            return
        self._reloading += 1
        # The manager compares the time with that of its own request.
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}", "STATUS=reading the configuration")
        try:
            yield
        finally:
            self._reloading -= 1
            if not self._reloading and not self._stopping:
                self._send("READY=1", f"STATUS={status()}")

    def stopping(self) -> None:
        """Tell that the gateway drains."""
        self._stopping = True
        self._send("STOPPING=1", "STATUS=draining: finishing requests in flight")

    @property
    def listens(self) -> bool:
        """Whether there is a service manager to notify."""
        return self._address is not None

    def hand_over(self, pid: int) -> None:
        """Tell that the gateway is another process from now on, and nothing any more."""
        self._send(f"MAINPID={pid}")
        self._address = None

    def alive(self) -> None:
        """Tell that the gateway works, where the manager wants to know."""
        if self._watched:
            self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        try:
            # A manager that does not read must not hold the gateway: what finds no room is lost.
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
                sock.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            if not self._failed:
                logger.warning("NOTIFY_SOCKET cannot be written to", extra={"error": str(error)})
            self._failed = True
        else:
            self._failed = False


def _address(text: str) -> bytes | None:
    if not text:
        return None
    if text[0] not in "/@":
        logger.warning("NOTIFY_SOCKET is neither a path nor an abstract name", extra={"value": text})
        return None
    name = os.fsencode(text)
    return b"\0" + name[1:] if text[0] == "@" else name


def _watched(usec: str, pid: str) -> bool:
    """Return whether the manager waits for a sign of life of this process (sd_watchdog_enabled(3))."""
    if not usec or (pid and pid != str(os.getpid())):
        return False
    if not usec.isascii() or not usec.isdigit() or not int(usec):
        logger.warning("WATCHDOG_USEC is not a number of microseconds", extra={"value": usec})
        return False
    if int(usec) < LEAST_WATCHDOG_SECONDS * MICROSECONDS:
        logger.warning("WATCHDOG_USEC is shorter than the interval at which the gateway notifies the service manager",
                       extra={"watchdog_s": int(usec) / MICROSECONDS, "least_s": LEAST_WATCHDOG_SECONDS})  # fmt: skip
    return True
