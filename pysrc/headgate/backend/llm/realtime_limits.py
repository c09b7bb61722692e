"""Limits of virtual keys in realtime conversations (WebSocket).

Both sides' events are read as they pass. An event of the client that may cost more is forwarded when that is reserved.
Where limits have no more, the client gets an error event and both connections are closed (RFC 6455 section 7.4).

Sound is counted by its size: of a prompt a token for each 800 bytes, which is 100 ms of G.711, of an answer for each
2,400 bytes, which is 50 ms of 16 bits at 24 kHz (https://platform.openai.com/docs/guides/realtime-costs).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Any, Final, Protocol

from headgate_engine.context.request import RequestContext
from headgate_engine.llm.metered import SPENT
from headgate_engine.llm.realtime_use import RealtimeUse
from headgate_engine.websocket.frames import BINARY, CLOSE, TEXT, FrameError, FrameReader, frame

# The longest event of a client is one with 15 MiB of sound.
LIMIT: Final = 16 * 1024 * 1024
# Events of more bytes are not read as JSON.
LONG_EVENT: Final = 65_536
HEAD: Final = 4096
PROMPT_SOUND_BYTES: Final = 800
ANSWER_SOUND_BYTES: Final = 2400
BYTES_PER_TOKEN: Final = 3
CREATE: Final = "response.create"
SOUND: Final = "input_audio_buffer.append"
BOUND: Final = re.compile(rb'"max_(?:response_)?output_tokens"\s*:\s*(\d{1,12})')
# Close codes: the end was meant, and a policy is in the way.
NORMAL, POLICY = 1000, 1008
UNREADABLE: Final = "the frames of a conversation with limits cannot be read"


class LimitedTunnel(Protocol):
    """Both connections of a conversation (headgate_engine.link.tunnel.StreamTunnel)."""

    def tunnel_send(self, to_upstream: bytes, to_client: bytes) -> None:
        """Send bytes to both sides."""

    def tunnel_end(self, detail: str) -> None:
        """Close both connections."""


class Inspector(Protocol):
    """Who else decides what goes on: guards."""

    def from_client(self, data: bytes) -> None:
        """Take bytes from the client."""

    def from_upstream(self, data: bytes) -> None:
        """Take bytes from the provider."""

    def closed(self) -> None:
        """End."""


def converse(tunnel: LimitedTunnel, ctx: RequestContext, guard: Inspector | None) -> LimitedConversation:
    """Return what holds the limits of the key of a conversation. guard: gets what passes."""
    return LimitedConversation(tunnel, RealtimeUse(ctx), guard)


class LimitedConversation:
    """One conversation. What does not fit ends it."""

    def __init__(self, tunnel: LimitedTunnel, use: RealtimeUse, guard: Inspector | None) -> None:
        self._tunnel = tunnel
        self._use = use
        self._guard = guard
        self._client = FrameReader(True, LIMIT)
        self._provider = FrameReader(False, LIMIT)
        self._over = False
        use.said(0)

    def from_client(self, data: bytes) -> None:
        """Take bytes from the client."""
        for opcode, payload, raw in self._read(self._client, data):
            if opcode in (TEXT, BINARY):
                self._client_event(payload)
            if self._use.over:
                self._end()
            if self._over:
                return
            if self._guard is not None:
                self._guard.from_client(raw)
            else:
                self._tunnel.tunnel_send(raw, b"")

    def from_upstream(self, data: bytes) -> None:
        """Take bytes from the provider."""
        for opcode, payload, raw in self._read(self._provider, data):
            if self._over:
                return
            if self._guard is not None:
                self._guard.from_upstream(raw)
            else:
                self._tunnel.tunnel_send(b"", raw)
            if opcode == TEXT and not self._over:
                self._provider_event(payload)
                if self._use.over:
                    self._end()

    def closed(self) -> None:
        """The conversation has ended."""
        self._over = True
        if self._guard is not None:
            self._guard.closed()
        self._use.close()

    def _read(self, reader: FrameReader, data: bytes) -> Iterable[tuple[int, bytes, bytes]]:
        if self._over:
            return ()
        try:
            return reader.feed(data)
        except FrameError as error:
            self._over = True
            self._tunnel.tunnel_end(f"{UNREADABLE}: {error}")
            return ()

    def _client_event(self, payload: bytes) -> None:
        """Reserve for what an event may come to."""
        event = _read_event(payload)
        kind = event.get("type")
        if kind == SOUND or (len(payload) > LONG_EVENT and SOUND.encode() in payload[:HEAD]):
            self._use.said(len(payload) * 3 // 4 // PROMPT_SOUND_BYTES + 1)
            return
        self._use.said(len(payload) // BYTES_PER_TOKEN)
        if kind == CREATE or b'"response.create"' in payload:
            self._use.asks(max((int(found) for found in BOUND.findall(payload)), default=0))

    def _provider_event(self, payload: bytes) -> None:
        """Note what an event tells of the answer."""
        head = payload[:HEAD]
        if b'"response.done"' in head:
            self._use.done(payload)
        elif b'"response.created"' in head:
            self._use.begun()
        elif b'audio.delta"' in head:
            self._use.heard(len(payload) * 3 // 4 // ANSWER_SOUND_BYTES + 1)
        elif b'.delta"' in head and b"transcript" not in head:
            self._use.heard(len(str(_read_event(payload).get("delta"))) // BYTES_PER_TOKEN + 1)
        elif b'"session.created"' in head or b'"session.updated"' in head:
            session = _read_event(payload).get("session")
            for name in ("max_output_tokens", "max_response_output_tokens"):
                most = session.get(name) if isinstance(session, dict) else None
                if isinstance(most, int) and not isinstance(most, bool) and most > 0:
                    self._use.bounded(most)

    def _end(self) -> None:
        """Tell both sides, and end."""
        self._over = True
        error = {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": SPENT, "param": None}
        told = frame(json.dumps({"type": "error", "error": error}, separators=(",", ":")).encode())
        told += frame(POLICY.to_bytes(2, "big") + SPENT.encode(), CLOSE)
        self._tunnel.tunnel_send(frame(NORMAL.to_bytes(2, "big"), CLOSE, os.urandom(4)), told)
        self._tunnel.tunnel_end(SPENT)


def _read_event(payload: bytes) -> dict[str, Any]:
    """Return an event, an empty one for what is none or is long."""
    if len(payload) > LONG_EVENT:
        return {}
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
