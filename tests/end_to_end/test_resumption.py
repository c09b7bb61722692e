"""Event streams that break off: what a client missed it gets with Last-Event-ID, and the gateway does so at its targets."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import SAMPLE, Raw, asking, config
from tests.end_to_end.resumption_rig import resumable  # noqa: F401

pytestmark = pytest.mark.warm


class Events:
    """A GET stream of a session: `next()` gives id and message."""

    def __init__(self, raw: Raw, after: str | None = None) -> None:
        fields = {"accept": "text/event-stream", "mcp-session-id": raw.session}
        if after is not None:
            fields["last-event-id"] = after
        self._stream = httpx.stream("GET", f"{str(raw.http.base_url).rstrip('/')}/mcp", headers=fields, timeout=60)
        self.answer = self._stream.__enter__()
        assert self.answer.status_code == 200
        self._lines = self.answer.iter_lines()

    def next(self) -> tuple[str, dict[str, Any]]:
        found: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.partition(": ")
            if line and name:
                found[name] = value
            elif "data" in found:
                return found.get("id", ""), json.loads(found["data"])
        raise AssertionError("the stream ended")

    def methods(self, count: int) -> list[str]:
        return [self.next()[1]["method"] for _ in range(count)]

    def close(self) -> None:
        self._stream.__exit__(None, None, None)


TARGETS = [
    ({"a": asking("a")}, "", "", "note://a/1"),
    ({"a": asking("a"), "b": asking("b")}, "a_", "a+", "a+note://a/1"),
]


@pytest.mark.parametrize(("targets", "prefix", "mark", "uri"), TARGETS, ids=["process", "federated"])
def test_a_client_that_comes_back_gets_what_it_missed(
    gateway: Callable[..., Any], targets: dict[str, str], prefix: str, mark: str, uri: str
) -> None:
    running = gateway(config(targets))
    raw = Raw(running)
    raw.ask("resources/subscribe", uri=uri)
    events = Events(raw)
    raw.text(f"{prefix}later")
    first, message = events.next()
    assert message["params"]["uri"] == f"{mark}note://a/1"
    assert first
    # While a request is under way alone, what the server says belongs to that.
    assert events.methods(1) == ["notifications/tools/list_changed"]
    events.close()
    # What the gateway had sent to the lost connection, and what comes while there is none.
    raw.text(f"{prefix}later")
    running.wait_log_count("a has told of changes", 2)
    again = Events(raw, first)
    assert again.methods(3) == [
        "notifications/tools/list_changed", "notifications/resources/updated", "notifications/tools/list_changed"
    ]  # fmt: skip
    # The stream goes on; a client that says nothing of what it has seen gets what is new.
    raw.text(f"{prefix}later")
    assert again.methods(2) == ["notifications/resources/updated", "notifications/tools/list_changed"]
    third = Events(raw, "unknown-7")
    raw.text(f"{prefix}later")
    assert third.methods(1) == ["notifications/resources/updated"]
    third.close()


@pytest.mark.parametrize(("targets", "prefix", "mark", "uri"), TARGETS, ids=["process", "federated"])
def test_a_client_may_have_several_streams(
    gateway: Callable[..., Any], targets: dict[str, str], prefix: str, mark: str, uri: str
) -> None:
    """Each message comes on one of them, the newest; the others stay open, and go on when that ends."""
    raw = Raw(gateway(config(targets)))
    raw.ask("resources/subscribe", uri=uri)
    older = Events(raw)
    raw.text(f"{prefix}later")
    (first, _), _ = older.next(), older.next()
    newer = Events(raw)
    raw.text(f"{prefix}later")
    (on_newer, _), _ = newer.next(), newer.next()
    # What was on one stream is not sent again on another.
    resumed = Events(raw, first)
    assert resumed.methods(1) == ["notifications/tools/list_changed"]
    raw.text(f"{prefix}later")
    assert resumed.methods(2) == ["notifications/resources/updated", "notifications/tools/list_changed"]
    assert on_newer.endswith(".1")
    resumed.close()
    # The connection that was lost has ended; the newer stream goes on once the gateway sees that the client has left the resumed one.
    with pytest.raises(AssertionError, match="the stream ended"):
        older.next()
    found: list[tuple[str, dict[str, Any]]] = []
    reader = threading.Thread(target=lambda: found.append(newer.next()), daemon=True)
    reader.start()
    while not found:
        raw.text(f"{prefix}later")
        reader.join(0.1)
    assert found[0][0].endswith(".1")
    newer.close()


def test_the_gateway_takes_up_streams_of_its_targets_again(
    gateway: Callable[..., Any], resumable: tuple[int, list[str | None]]
) -> None:
    port, asked = resumable
    raw = Raw(gateway(config({"r": f'mcp: {{host: "127.0.0.1:{port}"}}', "s": SAMPLE})))
    assert raw.text("r_call") == "at last"
    assert asked == ["call-0"]
    events = Events(raw)
    seen = [events.next() for _ in range(2)]
    assert [message["method"] for _, message in seen] == [
        "notifications/tools/list_changed", "notifications/prompts/list_changed"
    ]  # fmt: skip
    deadline = time.monotonic() + 40
    while asked[-1] != "n-2":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    events.close()
    # A client that comes back has the target asked where it stood, by the target's ids and not by the gateway's.
    again = Events(raw, seen[0][0])
    assert again.next()[1]["method"] == "notifications/prompts/list_changed"
    again.close()
    assert set(asked[1:]) == {None, "n-1", "n-2"}


def test_a_single_remote_target_is_asked_with_the_client_s_own_id(
    gateway: Callable[..., Any], resumable: tuple[int, list[str | None]]
) -> None:
    port, asked = resumable
    raw = Raw(gateway(config({"r": f'mcp: {{host: "127.0.0.1:{port}"}}'})))
    found = raw.post({"id": 5, "method": "tools/call", "params": {"name": "call"}})
    assert "id: call-0" in found.text
    events = Events(raw, "call-0")
    event_id, message = events.next()
    assert (event_id, message["result"]["content"][0]["text"]) == ("call-1", "at last")
    events.close()
    assert asked == ["call-0"]


def test_a_stream_without_ids_that_ends_early_is_an_error_of_its_call(
    gateway: Callable[..., Any], upstream: Callable[..., int]
) -> None:
    def run(connection: Any) -> None:
        got = b""
        while b"\r\n\r\n" not in got or not got.endswith(b"}"):
            got += connection.recv(65536)
        message = json.loads(got.partition(b"\r\n\r\n")[2])
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        text = b""
        if message["method"] == "initialize":
            text = b"data: " + json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n\n"
        status = b"200 OK" if "id" in message else b"202 Accepted"
        head = b"HTTP/1.1 %s\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        connection.sendall(head % (status, len(text)) + text)

    raw = Raw(gateway(config({"r": f'mcp: {{host: "127.0.0.1:{upstream(run)}"}}'}, "  prefixMode: always\n")))
    found = raw.post({"id": 5, "method": "tools/call", "params": {"name": "r_call"}})
    assert (found.status_code, "there was no answer" in found.text) == (500, True)
