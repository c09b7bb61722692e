"""A new process of the gateway that takes the place of this one, so that a new version serves without a gap.

It is started with the arguments and the environment of this process, from the file that this process was started from,
and gets the listening sockets (server/handover). Both accept until it serves; then this process drains. If the new
process cannot serve, nothing has changed. https://nginx.org/en/docs/control.html#upgrade has the same signal.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from headgate.admin.running import UpgradeRefused
from headgate.server.handover import MAX_PACKET, VARIABLE, Handover, HandoverFailed, read_packet, send_handover
from headgate.server.parent_death import ends_with_parent

logger = logging.getLogger("headgate.supervisor")

# How long the new process may take to read its configuration and to serve.
READY_SECONDS: Final = 120.0
# How often, and with what pauses, one looks for its exit status once its end of the channel has closed.
STATUS_LOOKS: Final = 200
POLL_SECONDS: Final = 0.01
KILL_SECONDS: Final = 2.0
# The program of a gateway that is one file, which sys.executable does not name.
PROGRAM_VARIABLE: Final = "HEADGATE_PROGRAM"


class Ready(NamedTuple):
    """What the new process says: its process id, and the names of the ports that it serves."""

    pid: int
    taken: frozenset[str]


def command() -> list[str]:
    """Return what this process was started with, as a command that runs whatever is installed now."""
    program = os.environ.get(PROGRAM_VARIABLE)
    return [program, *sys.argv[1:]] if program else [sys.executable, *sys.orig_argv[1:]]


def obstacle(environ: Mapping[str, str], notified: bool) -> str:
    """Return why no other process can take the place of this one, because somebody takes the end of this process for
    that of the gateway; "" if nobody is known to. `notified`: a service manager can be told of another process.
    """
    if ends_with_parent():
        return "it ends with the process that started it"
    if os.getpid() == 1:
        return "it is process 1 of a container; start a new container instead"
    if not notified and environ.get("SYSTEMD_EXEC_PID") == str(os.getpid()):
        return "the systemd unit must have Type=notify, or systemd takes the end of this process for the service's"
    return ""


class Successor:
    """The new process, until it serves."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket, handover: Handover) -> None:
        self.process = process
        self._channel = channel
        self._handover = handover

    @classmethod
    def start(cls, handover: Handover, environment: Mapping[str, str]) -> Successor:
        """Start it. `environment`: what it needs beside that of this process. Raises UpgradeRefused."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = command()
        try:
            process = subprocess.Popen(
                words,
                env={**os.environ, **environment, VARIABLE: str(theirs.fileno())},
                pass_fds=(theirs.fileno(),),
            )
        except OSError as error:
            ours.close()
            raise UpgradeRefused(f"{words[0]} cannot be started: {error.strerror or error}") from None
        finally:
            theirs.close()
        ours.setblocking(False)
        return cls(process, ours, handover)

    async def ready(self) -> Ready:
        """Hand everything over, and return when the new process serves. Raises UpgradeRefused when it does not; then it
        has ended.
        """
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._send()
                return await self._answer()
        except TimeoutError:
            why = f"the new process does not serve within {READY_SECONDS:.0f} s"
        except (HandoverFailed, OSError):
            why = f"the new process ended before it served ({await self._status()}); its output says why"
        except UpgradeRefused:
            await self._status()  # it says why on its standard error, and cleans up
            await self.end()
            raise
        except (KeyError, TypeError, ValueError) as error:
            why = f"the message of the new process is invalid: {error!r}"
        except BaseException:
            self.kill()
            raise
        await self.end()
        raise UpgradeRefused(why)

    async def _send(self) -> None:
        try:
            await send_handover(self._channel, self._handover)
        except (BrokenPipeError, ConnectionResetError):
            # It has hung up without reading all. What it says of that can still be read.
            return

    async def _answer(self) -> Ready:
        loop = asyncio.get_running_loop()
        taken: set[str] = set()
        while True:
            try:
                data = await loop.sock_recv(self._channel, MAX_PACKET)
            except ConnectionResetError:
                # It has ended with packets unread. The kernel says so once, before what it wrote.
                data = await loop.sock_recv(self._channel, MAX_PACKET)
            packet = read_packet(data)
            if "refused" in packet:
                raise UpgradeRefused(str(packet["refused"]))
            taken.update(map(str, packet["taken"]))
            if not packet.get("more"):
                return Ready(int(packet["ready"]), frozenset(taken))

    async def _status(self) -> str:
        status = self.process.poll()
        for _ in range(STATUS_LOOKS):
            if status is not None:
                break
            await asyncio.sleep(POLL_SECONDS)
            status = self.process.poll()
        return "it runs without a channel" if status is None else f"exit status {status}"

    def go(self) -> None:
        """Tell the new process that it is alone now."""
        with contextlib.suppress(OSError):
            self._channel.send(json.dumps({"go": True}).encode())
        self._channel.close()

    async def end(self) -> None:
        """End the new process and its workers, and wait until it is gone."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self.process.wait, KILL_SECONDS)

    def kill(self) -> None:
        """End the new process, unless it has ended, and its workers with it. Waits for nothing."""
        self._channel.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
