"""Conversations event by event: what passes, when others have their turn, and what ends them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headgate.backend.llm.guards.realtime import TURN, GuardedTunnel, Judges, Verdict, read_model_event
from headgate.backend.llm.off_loop import LONG_BYTES
from headgate_engine.websocket.frames import BINARY, PING, TEXT, FrameReader, frame

MASK = b"\x01\x02\x03\x04"


class Tunnel:
    """Both connections of a conversation, and the tasks of its guards."""

    def __init__(self, *, judged: bool = True, window: Callable[[list[bytes]], Verdict] | None = None) -> None:
        self.upstream = b""
        self.client = b""
        self.held: list[bool] = []
        self.ended: str | None = None
        self.tasks: list[Coroutine[Any, Any, None]] = []
        self.guarded = GuardedTunnel(
            self,
            Judges(
                check_event=(lambda event: None) if judged else None, window=window, message=str, size=20, overlap=16,
                spawn=lambda name, work: self.tasks.append(work),
            ),
        )  # fmt: skip

    def tunnel_send(self, to_upstream: bytes, to_client: bytes) -> None:
        self.upstream += to_upstream
        self.client += to_client

    def tunnel_hold(self, client: bool, held: bool) -> None:
        self.held.append(held)

    def tunnel_end(self, detail: str) -> None:
        self.ended = detail

    @property
    def passed(self) -> int:
        return len(FrameReader(True, 1 << 20).feed(self.upstream))


def test_many_tiny_events_leave_others_their_turn() -> None:
    tunnel = Tunnel()
    events = [frame(json.dumps({"type": "response.cancel", "n": at}).encode(), TEXT, MASK) for at in range(5 * TURN + 7)]
    tunnel.guarded.from_client(b"".join(events))
    turns = 0
    while tunnel.tasks:
        assert tunnel.passed == (turns + 1) * TURN
        if turns == 1:
            tunnel.guarded.from_client(events[0])            # what comes meanwhile waits behind the others
        asyncio.run(_done(tunnel.tasks.pop()))
        turns += 1
    assert turns == 5
    assert tunnel.upstream == b"".join(events) + events[0]
    assert tunnel.held[-1] is False


async def _done(work: Coroutine[Any, Any, None]) -> None:
    await work


def test_a_binary_message_of_a_client_ends_a_guarded_conversation() -> None:
    for judged in (True, False):
        tunnel = Tunnel(judged=judged)
        tunnel.guarded.from_client(frame(b"", PING, MASK) + frame(b"{}", BINARY, MASK))
        assert tunnel.passed == (1 if judged else 2)
        assert (tunnel.ended is not None) is judged


def test_reserved_frames_end_a_conversation_on_either_side() -> None:
    tunnel = Tunnel()
    tunnel.guarded.from_client(frame(b"x", 11, MASK))
    assert "reserved" in (tunnel.ended or "")
    other = Tunnel()
    other.guarded.from_upstream(frame(b"x", 3))
    assert "reserved" in (other.ended or "")


def client_event(text: str, *, judged: bool = True) -> Tunnel:
    tunnel = Tunnel(judged=judged)
    tunnel.guarded.from_client(frame(text.encode(), TEXT, MASK))
    return tunnel


REFUSED = [
    "{}",
    '{"type":"conversation.item.created"}',
    '{"type":"odd","item":{"content":"x"}}',
    '{"type":5}',
    '{"type":"response.cancel","type":"conversation.item.create"}',
    '{"type":"response.cancel","t\\u0079pe":"response.cancel"}',
]


@pytest.mark.parametrize("text", REFUSED)
def test_an_event_of_a_client_that_cannot_be_judged_is_refused(text: str) -> None:
    tunnel = client_event(text)
    assert (tunnel.upstream, tunnel.ended) == (b"", None)
    [(_, said, _)] = FrameReader(False, 1 << 20).feed(tunnel.client)
    error = json.loads(said)["error"]
    assert (error["type"], error["message"]) == ("guardrail_blocked", "events of this type cannot be checked")
    assert client_event(text, judged=False).passed == 1


@pytest.mark.parametrize("text", ["", "[]", "hello", '"x"', '{"type":"response.cancel"'])
def test_what_is_no_event_of_a_client_ends_the_conversation(text: str) -> None:
    tunnel = client_event(text)
    assert (tunnel.upstream, tunnel.client) == (b"", b"")
    assert "cannot be read" in (tunnel.ended or "")
    assert client_event(text, judged=False).passed == 1


@pytest.mark.parametrize("kind", ["input_audio_buffer.append", "response.cancel", "conversation.item.delete"])
def test_events_without_text_pass(kind: str) -> None:
    tunnel = client_event(json.dumps({"type": kind}))
    assert (tunnel.passed, tunnel.client, tunnel.ended) == (1, b"", None)


def user_text(text: str) -> str:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return json.dumps({"type": "conversation.item.create", "item": item})


LONG = "word " * LONG_BYTES


@pytest.mark.parametrize(("text", "passed", "ended"), [
    (user_text(LONG), True, None),
    (json.dumps({"type": "input_audio_buffer.append", "audio": LONG}), True, None),
    (json.dumps({"type": "odd", "item": LONG}), False, None),
    (user_text(LONG)[:-1], False, "cannot be read"),
])  # fmt: skip
def test_a_long_event_of_a_client_is_read_in_a_thread(text: str, passed: bool, ended: str | None) -> None:
    tunnel = client_event(text)
    assert (tunnel.upstream, tunnel.ended, tunnel.held) == (b"", None, [True])
    after = frame(b'{"type":"response.cancel"}', TEXT, MASK)
    tunnel.guarded.from_client(after)            # waits behind it
    assert tunnel.upstream == b""
    asyncio.run(_done(tunnel.tasks.pop()))
    if ended is None:
        assert tunnel.upstream == (frame(text.encode(), TEXT, MASK) if passed else b"") + after
        assert tunnel.held == [True, False]
    else:
        assert ended in (tunnel.ended or "")


def test_a_long_event_of_a_model_is_read_in_a_thread() -> None:
    seen: list[list[bytes]] = []
    tunnel = Tunnel(window=seen.append)          # finds nothing
    event = frame(json.dumps({"type": "response.output_text.delta", "item_id": "a", "delta": LONG}).encode(), TEXT)
    tunnel.guarded.from_upstream(event)
    assert (tunnel.client, seen) == (b"", [])
    asyncio.run(_done(tunnel.tasks.pop()))
    assert (tunnel.client, seen) == (event, [[LONG.encode()]])
    plain = Tunnel()
    plain.guarded.from_upstream(event)           # nothing reads it
    assert (plain.client, plain.tasks) == (event, [])


@pytest.mark.parametrize("size", [0, LONG_BYTES])
def test_events_of_a_model_are_what_lenient_parsers_read(size: int) -> None:
    blanks = b" " * size
    assert read_model_event(b'{"delta":NaN,"type":"x"}' + blanks) is not None
    assert read_model_event(b'{"type":"x"}' + blanks) == {"type": "x"}
    assert read_model_event(b"[1]" + blanks) is None
    assert read_model_event(b'{"type":' + blanks) is None
    assert read_model_event(b"[" * (size + 100_000)) is None
