"""WebSocket through the gateway, over HTTP/1.1 and HTTP/2 on either side: the published cases of Autobahn, with wsproto at both ends.

The gateway tunnels: the bytes that arrive are those that were sent, in both directions, however they are cut.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator

import pytest
from tests.end_to_end.running import Pool, free_port
from tests.end_to_end.websocket_rig import PATIENCE, Pipe, WebSocketBackend, opened
from websocket_cases import GROUPS, Case, accepted, ended, heard_in

CONFIG = """
gateways:
  default: {port: {port}}
  second: {port: SECOND}
routes:
- {gateways: [default], backends: [{host: "127.0.0.1:BACKEND", policies: {http: {version: HTTP/1.1}}}]}
- {gateways: [second], backends: [{host: "127.0.0.1:BACKEND", policies: {http: {version: HTTP/2}}}]}
"""
WAYS = list(itertools.product(("1.1", "2"), repeat=2))
COUNT = itertools.count()


@pytest.fixture(scope="module")
def backend() -> Iterator[WebSocketBackend]:
    found = WebSocketBackend()
    yield found
    found.close()


@pytest.fixture(scope="module")
def ports(resting: Pool, backend: WebSocketBackend) -> Iterator[dict[str, int]]:
    second, key = free_port(), (1, "{}", "")
    running = resting.take(CONFIG.replace("SECOND", str(second)).replace("BACKEND", str(backend.port)), key)
    yield {"1.1": running.port, "2": second}
    log = running.log()
    resting.give_back(key, running)
    assert "Traceback" not in log, log


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)] if size else [data]


def rest_of(pipe: Pipe) -> bytes:
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while data := pipe.receive():
            parts.append(data)
    return b"".join(parts)


def talk(pipe: Pipe, pieces: list[bytes]) -> bytes:
    """Send while reading; a server that has closed may take no more."""

    def send() -> None:
        with contextlib.suppress(OSError):
            for piece in pieces:
                pipe.send(piece)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    found = rest_of(pipe)
    sender.join(PATIENCE)
    with contextlib.suppress(OSError):
        pipe.end()
    pipe.close()
    return found


def cuts_of(case: Case) -> tuple[int, ...]:
    """Sizes of pieces: each byte alone where there are few, odd ones where there are many; 0 is all at once."""
    size = len(case.data)
    return (0, 1, 3) if size < 120 else (0, 7) if size < 700 else (0, 997) if size < 70_000 else (0,)


@pytest.mark.parametrize(("client", "server"), WAYS)
@pytest.mark.parametrize("group", GROUPS)
def test_a_group_of_cases(ports: dict[str, int], backend: WebSocketBackend, group: str, client: str, server: str) -> None:
    for case in GROUPS[group]:
        for size in cuts_of(case):
            path = f"/echo/{next(COUNT)}"
            answer, _, extensions = accepted(case.offer)
            pipe = opened(ports[server], client, path, case.offer)
            assert pipe.offered == answer
            told = talk(pipe, cut(case.data, size))
            got = backend.received(path)
            assert told == backend.sent[path], (case.name, size)
            assert heard_in(told, extensions) == case.heard, (case.name, size)
            # A server that has closed may not hear what stands behind that.
            assert case.data.startswith(got), (case.name, size)
            assert got == case.data or case.closes or case.code != 1000, (case.name, size)
            assert backend.versions[path] == server


@pytest.mark.parametrize(("client", "server"), WAYS)
def test_a_side_that_is_done_hears_the_other(ports: dict[str, int], backend: WebSocketBackend, client: str, server: str) -> None:
    path = f"/first/{next(COUNT)}"
    pipe = opened(ports[server], client, path)
    found = pipe.receive()
    pipe.send(ended(1001, b"leaving"))
    pipe.end()
    assert found + rest_of(pipe) == b"before your end and behind it"
    assert backend.received(path) == ended(1001, b"leaving")
    pipe.close()
