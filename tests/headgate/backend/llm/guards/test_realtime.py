"""Conversations event by event: what passes, when others have their turn, and what ends them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

from headgate.backend.llm.guards.realtime import TURN, GuardedTunnel, Judges
from headgate_engine.websocket.frames import BINARY, PING, TEXT, FrameReader, frame

MASK = b"\x01\x02\x03\x04"


class Tunnel:
    """Both connections of a conversation, and the tasks of its guards."""

    def __init__(self, *, judged: bool = True) -> None:
        self.upstream = b""
        self.client = b""
        self.held: list[bool] = []
        self.ended: str | None = None
        self.tasks: list[Coroutine[Any, Any, None]] = []
        self.guarded = GuardedTunnel(
            self,
            Judges(
                said=(lambda event: None) if judged else None, window=None, message=str, size=20, overlap=16,
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
    events = [frame(json.dumps({"n": at}).encode(), TEXT, MASK) for at in range(5 * TURN + 7)]
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
