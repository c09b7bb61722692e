"""A quick service for policies: it answers Envoy's ext_authz, ext_proc and rate limit protocols with answers made in advance.

Usage: python -m bench.services.service PORT

It reads no message, but tells the parts of a request apart by the tag that each begins with. The engine's own session is its HTTP/2.
"""

from __future__ import annotations

import asyncio
import sys
from typing import NoReturn

import uvloop
from envoy.service.auth.v3.external_auth_pb2 import CheckResponse
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse
from envoy.service.ratelimit.v3.rls_pb2 import RateLimitResponse

from headgate_drivers.http2 import Http2Peer
from headgate_engine.http2.limits import Http2Limits

PREFIX = 5
HEAD = [(b":status", b"200"), (b"content-type", b"application/grpc")]
FINE = [(b"grpc-status", b"0")]
LIMITS = Http2Limits(max_streams=1000, connection_window=2**30, resets=1_000_000, oddities=1_000_000)


def framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def _allowed() -> bytes:
    found = CheckResponse()
    option = found.ok_response.headers.add()
    option.header.key, option.header.value = "x-user", "ann"
    return found.SerializeToString()


def _counted() -> bytes:
    found = RateLimitResponse(overall_code=RateLimitResponse.OK)
    status = found.statuses.add(code=RateLimitResponse.OK, limit_remaining=9)
    status.current_limit.requests_per_unit, status.current_limit.unit = 10, 1
    return found.SerializeToString()


UNARY = {"Check": framed(_allowed()), "ShouldRateLimit": framed(_counted())}
# Answers to headers and trailers, by the name of the part.
PARTS = {name: framed(ProcessingResponse(**{name: {}}).SerializeToString())
         for name in ("request_headers", "response_headers", "request_trailers", "response_trailers")}  # fmt: skip


class Service(asyncio.Protocol):
    """One connection of a proxy."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.peer = Http2Peer(True, LIMITS)
        self.transport = transport
        self.asked: dict[int, str] = {}
        self.come: dict[int, bytes] = {}
        self._write()

    def _write(self) -> None:
        while out := self.peer.output():
            self.transport.write(out)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        for event in self.peer.receive(data):
            kind, number = event[0], event[1] if len(event) > 1 else 0
            if kind == "head":
                self._asked(number, event[3])  # type: ignore[arg-type]
            elif kind == "data" and number in self.come:
                self._parts(number, self.come[number] + event[2])  # type: ignore[operator]
            elif kind == "end":
                self._over(number)  # type: ignore[arg-type]
            elif kind == "reset":
                self.asked.pop(number, None)  # type: ignore[arg-type]
                self.come.pop(number, None)  # type: ignore[arg-type]
        self._write()

    def _asked(self, number: int, target: str) -> None:
        self.asked[number] = target.rpartition("/")[2]
        if self.asked[number] == "Process":
            self.come[number] = b""
            self.peer.respond(number, HEAD)

    def _parts(self, number: int, data: bytes) -> None:
        while len(data) >= PREFIX and len(data) >= (end := PREFIX + int.from_bytes(data[1:PREFIX], "big")):
            self.peer.send(number, answer(data[PREFIX:end]))
            data = data[end:]
        self.come[number] = data

    def _over(self, number: int) -> None:
        name = self.asked.pop(number, "")
        if self.come.pop(number, None) is None:
            self.peer.respond(number, HEAD)
            self.peer.send(number, UNARY[name])
        self.peer.end(number, FINE)


def answer(message: bytes) -> bytes:
    """Return the answer to a part of a request: nothing changes."""
    told = ProcessingRequest.FromString(message)
    part = told.WhichOneof("request")
    if part in PARTS:
        return PARTS[part]
    body = getattr(told, part)
    found = ProcessingResponse()
    piece = getattr(found, part).response.body_mutation.streamed_response
    piece.body, piece.end_of_stream = body.body, body.end_of_stream
    return framed(found.SerializeToString())


async def serve(port: int) -> NoReturn:
    await asyncio.get_running_loop().create_server(Service, "127.0.0.1", port)
    await asyncio.get_running_loop().create_future()
    raise AssertionError("the future has no result")


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
