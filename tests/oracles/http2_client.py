"""A client of HTTP/2 with the h2 package, on the sockets of a rig."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    InformationalResponseReceived,
    PingAckReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from rig import Rig

Fields = list[tuple[str, str]]


@dataclass
class Answer:
    fields: Fields = field(default_factory=list)
    body: bytes = b""
    trailers: Fields = field(default_factory=list)
    interim: list[int] = field(default_factory=list)
    ended: bool = False
    error: int | None = None

    @property
    def status(self) -> int:
        return int(dict(self.fields)[":status"])

    @property
    def over(self) -> bool:
        return self.ended or self.error is not None


class Http2Client:
    """A client with the h2 package. It acknowledges content as it reads, unless told not to."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.h2 = H2Connection(H2Configuration(
            header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False))
        self.answers: dict[int, Answer] = {}
        self.goaways: list[tuple[int, int]] = []
        self.pongs = 0
        self.closed = False
        self.greedy = True

    async def start(self, settings: dict[SettingCodes, int] | None = None) -> None:
        if settings:
            self.h2.local_settings.update(settings)
        self.h2.initiate_connection()
        await self.flush()

    async def flush(self) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, self.h2.data_to_send())

    async def request(self, method: str = "GET", path: str = "/", fields: Fields | None = None, *, end: bool = True) -> int:
        number = self.h2.get_next_available_stream_id()
        self.answers[number] = Answer()
        head = [(":method", method), (":scheme", "http"), (":authority", "a.test"), (":path", path), *(fields or [])]
        self.h2.send_headers(number, head, end_stream=end)
        await self.flush()
        return number

    async def read(self) -> bool:
        """One read. False: the connection is over."""
        try:
            data = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self.sock, 65536), 8)
        except ConnectionError:
            data = b""
        if not data:
            self.closed = True
            return False
        for event in self.h2.receive_data(data):
            self.take(event)
        try:
            await self.flush()
        except ConnectionError:
            self.closed = True
        return True

    def take(self, event: object) -> None:
        if isinstance(event, ConnectionTerminated):
            self.goaways.append((event.last_stream_id, int(event.error_code)))
        elif isinstance(event, PingAckReceived):
            self.pongs += 1
        number = getattr(event, "stream_id", None)
        answer = self.answers.get(number) if number else None
        if answer is None:
            return
        if isinstance(event, InformationalResponseReceived):
            answer.interim.append(int(dict(event.headers)[":status"]))
        elif isinstance(event, ResponseReceived):
            answer.fields = list(event.headers)
        elif isinstance(event, TrailersReceived):
            answer.trailers = list(event.headers)
        elif isinstance(event, DataReceived):
            answer.body += event.data
            if self.greedy:
                try:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, number)
                except ProtocolError:
                    pass
        elif isinstance(event, StreamEnded):
            answer.ended = True
        elif isinstance(event, StreamReset) and not answer.ended:
            answer.error = int(event.error_code)

    async def answer(self, number: int) -> Answer:
        while not self.answers[number].over:
            assert await self.read(), f"the connection ended: {self.goaways}"
        return self.answers[number]

    async def ask(self, method: str = "GET", path: str = "/", fields: Fields | None = None) -> Answer:
        return await self.answer(await self.request(method, path, fields))

    async def send(self, number: int, data: bytes, *, end: bool = False) -> None:
        """Send content as the windows allow."""
        while data:
            room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size, len(data))
            if room:
                self.h2.send_data(number, data[:room])
                data = data[room:]
                await self.flush()
            else:
                assert await self.read()
        if end:
            self.h2.end_stream(number)
            await self.flush()

    async def end(self) -> None:
        """Read until the gateway closes."""
        while await self.read():
            pass


async def connected(rig: Rig, settings: dict[SettingCodes, int] | None = None, *, receive_buffer: int = 0) -> Http2Client:
    client = Http2Client((await rig.client(receive_buffer=receive_buffer)).sock)
    await client.start(settings)
    return client
