"""The built-in peers as a server, byte by byte, and with clients of their APIs."""

from __future__ import annotations

import asyncio
import os
import socket
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from headgate.capacity.errors import BenchError
from headgate.capacity.own_gateway import OwnPeers
from headgate.capacity.stand_ins.answers import Behaviour
from headgate.capacity.stand_ins.server import PeerConnection, Peers, listening

ASKED: Any = [{"role": "user", "content": "hi"}]


class Sink:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.data = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def talked(data: bytes, *, step: int | None = None) -> Sink:
    """What a connection answers to these bytes, given at once or in pieces."""

    async def talk() -> Sink:
        sink: Any = Sink()
        connection = PeerConnection(Peers(Behaviour(size=3, tokens=2)), asyncio.get_running_loop())
        connection.connection_made(sink)
        for at in range(0, len(data), step or len(data)):
            connection.data_received(data[at : at + (step or len(data))])
        for _ in range(100):
            await asyncio.sleep(0)
        found: Sink = sink
        return found

    return asyncio.run(talk())


CHUNKED = b"POST /x HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
CASES = {
    "get": (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", [b"content-length: 3\r\n\r\nxxx"]),
    "two": (b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", [b"xxxHTTP/1.1 200"]),
    "chunked": (CHUNKED + b"GET / HTTP/1.1\r\n\r\n", [b"xxxHTTP/1.1 200"]),
    "stream": (b'POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 15\r\n\r\n{"stream":true}', [b"data: [DONE]", b"\r\n0\r\n\r\n"]),
    "whole": (b"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", [b'"text":"word word "']),
}


@pytest.mark.parametrize("step", [None, 1, 7])
@pytest.mark.parametrize("name", CASES)
def test_requests_are_read_however_they_come(name: str, step: int | None) -> None:
    data, parts = CASES[name]
    found = talked(data, step=step)
    assert found.data == talked(data).data
    assert found.data.startswith(b"HTTP/1.1 200 OK\r\n")
    assert all(part in found.data for part in parts)


def test_a_stream_ends_before_the_next_answer() -> None:
    data = b'POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 15\r\n\r\n{"stream":true}' + b"GET / HTTP/1.1\r\n\r\n"
    found = talked(data).data
    assert found.index(b"data: [DONE]") < found.index(b"0\r\n\r\nHTTP/1.1 200 OK") < found.index(b"xxx")


def test_a_connection_is_closed_when_it_is_asked_for_or_broken() -> None:
    assert talked(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\nGET / HTTP/1.1\r\n\r\n").data.count(b"HTTP/1.1") == 1
    assert talked(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").closed
    assert talked(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nno\r\n").closed
    assert b" 413 " in talked(b"POST / HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n" + b"x" * (17 << 20)).data


def test_a_head_has_no_body() -> None:
    assert talked(b"HEAD / HTTP/1.1\r\n\r\n").data.endswith(b"content-length: 3\r\n\r\n")


@pytest.fixture(scope="module")
def peers() -> Iterator[OwnPeers]:
    with OwnPeers(Behaviour(tokens=3, delay=0.001, gap=0.001), 2) as found:
        yield found


def test_clients_of_openai(peers: OwnPeers) -> None:
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{peers.port}/v1", api_key="k", max_retries=0)
    assert client.chat.completions.create(model="m", messages=ASKED).choices[0].message.content == "word word word "
    stream = client.chat.completions.create(model="m", messages=ASKED, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "word word word "
    assert client.responses.create(model="m", input="hi").output_text == "word word word "
    with client.responses.stream(model="m", input="hi") as events:
        assert events.get_final_response().output_text == "word word word "


def test_clients_of_anthropic(peers: OwnPeers) -> None:
    client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{peers.port}", api_key="k", max_retries=0)
    with client.messages.stream(model="m", max_tokens=9, messages=ASKED) as stream:
        assert stream.get_final_text() == "word word word "


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(BenchError, match="Address already in use"):
        listening("127.0.0.1", other.getsockname()[1])


def test_all_its_processes_end_with_it() -> None:
    with OwnPeers(Behaviour(), 2) as found:
        group = os.getpgid(found.pid)
        assert group == found.pid
        with urllib.request.urlopen(f"http://127.0.0.1:{found.port}/") as answer:
            assert answer.status == 200
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("a process is left")
