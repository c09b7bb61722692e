"""One bad target never takes the others: servers that break the protocol in every way we could think of, beside one that
does not.
"""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import Raw, config, messages
from tests.end_to_end.mcp_bad_targets_rig import SSE, answer, letters, server, tools, whole
from tests.end_to_end.mcp_sessions_rig import wait_for
from tests.end_to_end.mcp_stand_in import StandIn
from tests.end_to_end.processes import children_of, command_line

pytestmark = pytest.mark.warm

BAD = Path(__file__).resolve().parents[1] / "peers" / "bad_server.py"
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 1000}}
# How long the bad one may take in all of it: with an answer that can be used it gets the time that a busy machine takes.
SHORT, LONG = (f"\n    policies: {{http: {{requestTimeout: {seconds}}}}}" for seconds in ("1s", "60s"))


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    found = StandIn()
    yield found
    found.stop()








def event(body: bytes) -> bytes:
    return b"data: " + body + b"\n\n"


def said(head: bytes, *pieces: bytes) -> Callable[[socket.socket, Any], None]:
    """Say the same whatever is asked; {id} in it is the request's."""

    def say(connection: socket.socket, key: Any) -> None:
        raw_id = json.dumps(key).encode()
        connection.sendall(b"".join([head, *pieces]).replace(b"{id}", raw_id))

    return say


def bodies(*made: Callable[[Any], bytes]) -> Callable[[socket.socket, Any], None]:
    return lambda connection, key: connection.sendall(whole(b"".join(make(key) for make in made)))


def endless(connection: socket.socket, key: Any) -> None:
    connection.sendall(SSE)
    while True:
        connection.sendall(event(json.dumps(NOTE).encode()) * 20)
        time.sleep(0.01)


def silent(connection: socket.socket, key: Any) -> None:
    connection.settimeout(30)
    connection.recv(1)


def waiting(connection: socket.socket, key: Any) -> None:
    connection.sendall(SSE + b": wait\n\n")
    silent(connection, key)




def half_closed(connection: socket.socket, key: Any) -> None:
    body = answer(key, tools())
    connection.sendall(whole(body)[:-10])
    connection.shutdown(socket.SHUT_WR)


def broken_refusal(connection: socket.socket, key: Any) -> None:
    connection.sendall(b"HTTP/1.1 500 No\r\ncontent-type: text/plain\r\ncontent-length: 900\r\n\r\nhalf")
    connection.shutdown(socket.SHUT_WR)


def others(connection: socket.socket, key: Any) -> None:
    stolen = b"".join(event(answer(number, tools("stolen"))) for number in (*range(1, 30), "x", None) if number != key)
    connection.sendall(SSE + stolen + event(answer(key, tools())) + event(answer(key, tools("again"))))


def garbage(connection: socket.socket, key: Any) -> None:
    junk = (b"no JSON", b"{", b"[]", b'{"jsonrpc":"1.0"}', b"\xff\xfe", b"[" * 5000, b"5", b"null")
    connection.sendall(SSE + b"".join(map(event, junk)) + event(answer(key, tools())))


def reset(connection: socket.socket, key: Any) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


# Each with whether it gives an answer that can be used all the same.
HTTP_WAYS: dict[str, tuple[Callable[[socket.socket, Any], None], bool]] = {
    "endless": (endless, False),
    "silent": (silent, False),
    "waiting": (waiting, False),
    "letters": (letters, True),
    "half-closed": (half_closed, False),
    "broken-refusal": (broken_refusal, False),
    "others": (others, True),
    "garbage": (garbage, True),
    "reset": (reset, False),
    "huge": (bodies(lambda key: answer(key, {"tools": [], "more": "x" * 17_000_000})), False),
    "huge-event": (said(SSE, b"data: ", b"x" * 17_000_000, b"\n\n"), False),
    "no-json": (bodies(lambda _: b"<html>"), False),
    "no-utf8": (bodies(lambda key: answer(key, tools()).replace(b"bad", b"\xff\xfe")), False),
    "deep": (bodies(lambda key: b'{"jsonrpc":"2.0","id":%d,"result":{"tools":' % key + b"[" * 100_000 + b"]" * 100_000 + b"}}"), False),
    "wrong-id": (bodies(lambda key: answer(key + 1, tools())), False),
    "id-as-text": (bodies(lambda key: answer(str(key), tools())), False),
    "two-ids": (bodies(lambda key: answer(key, tools())[:-1] + b', "id": 99}'), False),
    "two-answers": (bodies(lambda key: answer(key, tools()), lambda key: answer(key, tools("again"))), False),
    "array": (bodies(lambda key: b"[" + answer(key, tools()) + b"]"), False),
    "neither": (said(whole(b'{"jsonrpc":"2.0","id":{id} }')), False),
    "odd-result": (bodies(lambda key: answer(key, "x")), False),
    "odd-error": (said(whole(b'{"jsonrpc":"2.0","id":{id},"error":7}  ')[:-1]), False),
    "other-type": (said(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi"), False),
    "packed": (said(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nhi"), False),
    "accepted": (said(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"), False),
    "no-http": (said(b"SSH-2.0-x\r\n\r\n"), False),
    "redirect": (said(b"HTTP/1.1 302 Found\r\nlocation: http://evil.test/\r\ncontent-length: 0\r\n\r\n"), False),
    "unauthorized": (said(b"HTTP/1.1 401 No\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n"), False),
    "gone": (said(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"), False),
}




def by_itself(raw: Raw, tool: str) -> dict[str, Any]:
    """The answer to a call on a connection of its own, or why there was none."""
    with httpx.Client(base_url=raw.running.url, headers=raw.http.headers, timeout=30) as http:
        body = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": tool}}
        found = messages(http.post("/mcp", json=body))
        assert [one["id"] for one in found if "id" in one and "method" not in one] == [5], "one answer, and nobody else's"
        return found[-1]


@pytest.mark.parametrize("way", HTTP_WAYS)
def test_a_remote_server(gateway: Callable[..., Any], stand_in: StandIn, upstream: Callable[..., int], way: str) -> None:
    do, usable = HTTP_WAYS[way]
    good = stand_in.add(f"good-{way}")
    bad = f'mcp: {{host: "http://127.0.0.1:{upstream(server(do))}/mcp"}}{LONG if usable else SHORT}'
    running = gateway(config({"good": stand_in.target(good), "bad": bad}, "  failureMode: failOpen\n"))
    raw = Raw(running)
    found: list[dict[str, Any]] = []
    calling = threading.Thread(target=lambda: found.append(by_itself(raw, "bad_call")), daemon=True)
    if way not in ("endless", "waiting"):       # a stream that has begun may last
        calling.start()
    names = raw.names("tools/list", "tools")
    assert names == (["good_call", "bad_call"] if usable else ["good_call"])
    assert raw.text("good_call") == f"good-{way} called"
    if way not in ("endless", "waiting"):
        calling.join(60)
        assert ("result" in found[0]) == usable, found
        if "error" in found[0]:
            assert found[0]["error"]["message"]
    else:
        call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "bad_call"}}
        with contextlib.suppress(httpx.TimeoutException), raw.http.stream("POST", "/mcp", json=call, timeout=0.5) as events:
            for _ in zip(range(50), events.iter_lines(), strict=False):
                pass
    assert raw.text("good_call") == f"good-{way} called"
    assert raw.http.delete("/mcp").status_code == 200


def test_a_target_that_hangs_is_reported_where_all_must_answer(
    gateway: Callable[..., Any], stand_in: StandIn, upstream: Callable[..., int]
) -> None:
    good = stand_in.add("good-closed")
    bad = f'mcp: {{host: "http://127.0.0.1:{upstream(server(waiting))}/mcp"}}{SHORT.replace("1s", "3s")}'
    raw = Raw(gateway(config({"good": stand_in.target(good), "bad": bad})))
    error = raw.ask("tools/list")["error"]
    assert (error["code"], error["message"]) == (-32603, "failed to send message: bad: upstream call timeout")
    assert raw.text("good_call") == "good-closed called"


# -- processes -------------------------------------------------------------------------------------------------------------
PROCESS_WAYS = {
    "garbage": True, "others": True, "letters": True, "flood": True, "forks": True,
    "leaves_a_child": False, "long_line": False, "deaf": None, "closes": False, "ends": False,
}  # fmt: skip


def descendants(running: Any) -> list[int]:
    """Processes of bad servers, and what they started."""
    below = [pid for worker in running.worker_pids() for pid in children_of(worker)]
    return [pid for pid in (*below, *(one for pid in below for one in children_of(pid))) if "bad_server" in command_line(pid)]


@pytest.mark.parametrize("way", PROCESS_WAYS)
def test_a_process(gateway: Callable[..., Any], stand_in: StandIn, way: str) -> None:
    good = stand_in.add(f"good-{way}")
    bad = f"stdio: {{cmd: {json.dumps(sys.executable)}, args: {json.dumps([str(BAD), way])}}}"
    running = gateway(config({"good": stand_in.target(good), "bad": bad}, "  failureMode: failOpen\n"))
    raw = Raw(running)
    assert raw.names("tools/list", "tools") == ["good_call", "bad_call"]
    if PROCESS_WAYS[way] is None:
        with pytest.raises(httpx.TimeoutException):
            raw.http.post("/mcp", json={"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "bad_call"}}, timeout=0.5)
    else:
        found = by_itself(raw, "bad_call")
        assert ("result" in found) == PROCESS_WAYS[way], found
        if PROCESS_WAYS[way]:
            assert found["result"]["content"][0]["text"] == "bad called"
    assert raw.text("good_call") == f"good-{way} called"
    started = descendants(running)
    assert raw.http.delete("/mcp").status_code == 200
    # Whatever it does with signals, nothing of it is left.
    wait_for(lambda: not [pid for pid in started if "bad_server" in command_line(pid)])
    wait_for(lambda: not descendants(running))


def test_a_process_that_does_not_read(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    """What it does not take is held back at its clients: neither the gateway's memory nor the others suffer."""
    good = stand_in.add("good-unread")
    bad = f"stdio: {{cmd: {json.dumps(sys.executable)}, args: {json.dumps([str(BAD), 'deaf'])}}}"
    running = gateway(config({"good": stand_in.target(good), "bad": bad}, "  failureMode: failOpen\n"))
    raw = Raw(running)
    call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "bad_call", "arguments": {"x": "y" * 1_000_000}}}

    def ask() -> None:
        with contextlib.suppress(httpx.HTTPError):
            httpx.post(f"{running.url}/mcp", json=call, headers=raw.http.headers, timeout=3)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(12)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        assert raw.text("good_call") == "good-unread called"
    for thread in threads:
        thread.join(60)
    gc.collect()
    assert raw.text("good_call") == "good-unread called"
    assert raw.http.delete("/mcp").status_code == 200
    wait_for(lambda: not descendants(running))
