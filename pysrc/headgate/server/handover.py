"""What a gateway hands to the one that takes its place: listening sockets, and the secrets that its clients rely on.

Both ends may be of different versions. So the packets are JSON, and a reader leaves alone what it does not know. The
channel is a SOCK_SEQPACKET pair that nobody else holds:

    predecessor -> successor   {"format": 1, "sockets": [[use, name], ...], "more": true}, with the descriptors
    predecessor -> successor   {"format": 1, "sockets": ..., "sessionKey": "<hex>", "tickets": [<number>, "<hex>"]}
    successor -> predecessor   {"refused": "<reason>"}, or {"taken": ["<name>", ...], "more": true}, and at the end
                               {"ready": <process id>, "taken": [...]}
    predecessor -> successor   {"go": true}
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

# The descriptor of the successor's end of the channel, in the successor's environment.
VARIABLE: Final = "HEADGATE_UPGRADE_FD"
FORMAT: Final = 1
MAX_PACKET: Final = 64 * 1024
# The kernel lets 253 descriptors travel with a packet (SCM_MAX_FD).
MOST_DESCRIPTORS: Final = 200
# Names of ports in a packet: 64 bytes each at most, with quotes.
MOST_NAMES: Final = 1000
# `use` of a port's socket, and of one that belongs to a service manager. Others are names of operator's servers.
PORT: Final = "port"
LENT: Final = "lent"


class HandoverFailed(Exception):
    """The other end does not say what is expected of it. The argument tells what is wrong."""


class HandedSocket(NamedTuple):
    """A listening socket. `use`: PORT, LENT, or the operator's server that has it (`admin`, `stats`, `readiness`).
    `name`: the predecessor's key of the port, or the service manager's name of the socket.
    """

    use: str
    name: str
    sock: socket.socket


class Handover(NamedTuple):
    """`session_key`: 32 bytes that seal session ids. `tickets`: what keys of TLS session tickets are made from."""

    sockets: list[HandedSocket]
    session_key: bytes
    tickets: tuple[int, bytes]


async def send_handover(channel: socket.socket, handover: Handover) -> None:
    """Write everything to a channel that does not block, as fast as the other end reads. Raises OSError."""
    rest = list(handover.sockets)
    while True:
        part, rest = rest[:MOST_DESCRIPTORS], rest[MOST_DESCRIPTORS:]
        packet: dict[str, Any] = {"format": FORMAT, "sockets": [[one.use, one.name] for one in part]}
        if rest:
            packet["more"] = True
        else:
            number, secret = handover.tickets
            packet |= {"sessionKey": handover.session_key.hex(), "tickets": [number, secret.hex()]}
        data = json.dumps(packet).encode()
        while True:
            try:
                socket.send_fds(channel, [data], [one.sock.fileno() for one in part])
                break
            except BlockingIOError:
                # The kernel holds 200 KiB, which is less than the sockets of 3,000 ports need.
                await _writable(channel)
        if not rest:
            return


async def _writable(channel: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    found: asyncio.Future[None] = loop.create_future()
    loop.add_writer(channel, _wake, found)
    try:
        await found
    finally:
        loop.remove_writer(channel)


def receive_handover(channel: socket.socket) -> Handover:
    """Read what send_handover() has written. Raises HandoverFailed, and OSError (TimeoutError among them)."""
    found: list[HandedSocket] = []
    while True:
        data, descriptors, _flags, _address = socket.recv_fds(channel, MAX_PACKET, MOST_DESCRIPTORS)
        for descriptor in descriptors:
            # recv_fds() of CPython 3.11 has no use for its flags.
            os.set_inheritable(descriptor, False)
        packet = read_packet(data)
        try:
            if packet["format"] != FORMAT:
                raise HandoverFailed(f"the running gateway hands over in format {packet['format']}, not {FORMAT}")
            rows = [(str(use), str(name)) for use, name in packet["sockets"]]
            found += [
                HandedSocket(use, name, socket.socket(fileno=descriptor))
                for (use, name), descriptor in zip(rows, descriptors, strict=True)
            ]
            if packet.get("more"):
                continue
            number, secret = packet["tickets"]
            return Handover(found, bytes.fromhex(packet["sessionKey"]), (int(number), bytes.fromhex(secret)))
        except (KeyError, TypeError, ValueError) as error:
            raise HandoverFailed(f"the handover message of the running gateway is invalid: {error!r}") from None


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def ready_packets(taken: Iterable[str]) -> Iterator[bytes]:
    """Yield what tells the predecessor that this process serves at the ports `taken`."""
    rest = sorted(taken)
    # Gateways of earlier versions read one packet, of this size at most.
    whole = json.dumps({"ready": os.getpid(), "taken": rest}).encode()
    if len(whole) <= MAX_PACKET:
        yield whole
        return
    while len(rest) > MOST_NAMES:
        part, rest = rest[:MOST_NAMES], rest[MOST_NAMES:]
        yield json.dumps({"taken": part, "more": True}).encode()
    yield json.dumps({"ready": os.getpid(), "taken": rest}).encode()


def read_packet(data: bytes) -> dict[str, Any]:
    """Return the object in a packet. Raises HandoverFailed, also where the other end has closed the channel."""
    if not data:
        raise HandoverFailed("the other process has ended")
    try:
        packet = json.loads(data)
    except ValueError:
        packet = None
    if not isinstance(packet, dict):
        raise HandoverFailed("a packet is not a JSON object")
    return packet
