"""Limits of virtual keys in realtime conversations (WebSocket).

Both sides' events are read as they pass. An event of the client that may cost more is forwarded when that is reserved.
Where limits have no more, the client gets an error event and both connections are closed (RFC 6455 section 7.4).

Sound is counted by its size: of a prompt a token for each 800 bytes, which is 100 ms of G.711, of an answer for each
2,400 bytes, which is 50 ms of 16 bits at 24 kHz (https://platform.openai.com/docs/guides/realtime-costs). A picture
counts as in other requests (`assumedImageTokens`), whatever its bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

import orjson

from headgate.ir.virtual_keys import ASSUMED_IMAGE
from headgate_engine.context.request import RequestContext
from headgate_engine.llm.metered import SPENT
from headgate_engine.llm.realtime_use import RealtimeUse
from headgate_engine.websocket.frames import BINARY, CLOSE, TEXT, FrameError, FrameReader, frame

# The longest event of a client is one with 15 MiB of sound.
LIMIT: Final = 16 * 1024 * 1024
# Events of more bytes are not read as JSON.
LONG_EVENT: Final = 1024 * 1024
# With a picture: its text in base64 is one value, which is read at more than 1 MiB in a millisecond. Many small values
# take longer.
LONG_PICTURE: Final = 4 * 1024 * 1024
MOST_VALUES: Final = 1000
PICTURE: Final = "input_image"
HEAD: Final = 4096
PROMPT_SOUND_BYTES: Final = 800
ANSWER_SOUND_BYTES: Final = 2400
BYTES_PER_TOKEN: Final = 3
CREATE: Final = "response.create"
SOUND: Final = "input_audio_buffer.append"
OVER: Final = "response.done"
LONG_SOUND: Final = re.compile(rb'"type"\s*:\s*"input_audio_buffer\.append"')
BOUND: Final = re.compile(rb'"max_(?:response_)?output_tokens"\s*:\s*(\d{1,12})')
BOUNDS: Final = ("max_output_tokens", "max_response_output_tokens")
# Errors that end an answer before it begins, where they do not name the event that they are about.
BUSY: Final = "conversation_already_has_active_response"
# Close codes: the end was meant, and a policy is in the way.
NORMAL, POLICY = 1000, 1008
UNREADABLE: Final = "the frames of a conversation with limits cannot be read"


class LimitedTunnel(Protocol):
    """Both connections of a conversation (headgate_engine.link.tunnel.StreamTunnel)."""

    def tunnel_send(self, to_upstream: bytes, to_client: bytes) -> None:
        """Send bytes to both sides."""

    def tunnel_hold(self, client: bool, held: bool) -> None:
        """Pause or resume reading from a side."""

    def tunnel_end(self, detail: str) -> None:
        """Close both connections."""


class Inspector(Protocol):
    """The guards, which also decide what is passed on."""

    def from_client(self, data: bytes) -> None:
        """Take bytes from the client."""

    def from_upstream(self, data: bytes) -> None:
        """Take bytes from the provider."""

    def closed(self) -> None:
        """End."""


Guarded = Callable[[LimitedTunnel], Inspector | None]


def converse(
    per_picture: int, tunnel: LimitedTunnel, ctx: RequestContext, guarded: Guarded | None
) -> LimitedConversation:
    """Return what holds the limits of the key of a conversation.

    per_picture: tokens of a picture. guarded: makes the guards of a tunnel.
    """
    return LimitedConversation(tunnel, RealtimeUse(ctx), guarded, per_picture)


class LimitedConversation:
    """One conversation. What does not fit ends it.

    To guards this is the tunnel: events of the client count when guards have let them pass, and those of the provider
    before guards see them.
    """

    def __init__(
        self, tunnel: LimitedTunnel, use: RealtimeUse, guarded: Guarded | None, per_picture: int = ASSUMED_IMAGE
    ) -> None:
        self._tunnel = tunnel
        self._per_picture = per_picture
        self._use = use
        self._guard = None if guarded is None else guarded(self)
        self._client = FrameReader(True, LIMIT)
        self._provider = FrameReader(False, LIMIT)
        self._bound = use.assumed
        self._over = False
        use.said(0)

    def from_client(self, data: bytes) -> None:
        """Take bytes from the client."""
        if self._over:
            return
        if self._guard is not None:
            self._guard.from_client(data)
        else:
            self._to_provider(data)

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

    # -- for guards ----------------------------------------------------------------------------------------------------
    def tunnel_send(self, to_upstream: bytes, to_client: bytes) -> None:
        """Send what guards let pass."""
        if self._over:
            return
        if to_client:
            self._tunnel.tunnel_send(b"", to_client)
        if to_upstream:
            self._to_provider(to_upstream)

    def tunnel_hold(self, client: bool, held: bool) -> None:
        """Pause or resume reading from a side."""
        self._tunnel.tunnel_hold(client, held)

    def tunnel_end(self, detail: str) -> None:
        """Close both connections."""
        self._over = True
        self._tunnel.tunnel_end(detail)

    # -- events --------------------------------------------------------------------------------------------------------
    def _to_provider(self, data: bytes) -> None:
        for opcode, payload, raw in self._read(self._client, data):
            if opcode in (TEXT, BINARY):
                self._client_event(payload)
            if self._use.over:
                self._end()
            if self._over:
                return
            self._tunnel.tunnel_send(raw, b"")

    def _read(self, reader: FrameReader, data: bytes) -> Iterable[tuple[int, bytes, bytes]]:
        if self._over:
            return ()
        try:
            return reader.feed(data)
        except FrameError as error:
            self.tunnel_end(f"{UNREADABLE}: {error}")
            return ()

    def _client_event(self, payload: bytes) -> None:
        """Reserve for what an event may come to."""
        event = _read_event(payload)
        kind = event.get("type")
        if kind == SOUND or (len(payload) > LONG_EVENT and _is_long_sound(payload)):
            self._use.said(len(payload) * 3 // 4 // PROMPT_SOUND_BYTES + 1)
            return
        self._use.said(self._tokens(payload, event))
        # A bound may stand there several times, and of several ones the provider may read any.
        written = max((int(found) for found in BOUND.findall(payload)), default=0)
        if kind == CREATE or b'"response.create"' in payload or (not event and b"\\u" in payload):
            most = max(self._most(event.get("response")) or 0, written)
            name = event.get("event_id")
            self._use.asks(most, name if isinstance(name, str) else None)
        elif kind == "session.update" or (written and not event):
            self._widen(max(self._most(event.get("session")) or 0, written))

    def _tokens(self, payload: bytes, event: dict[str, Any]) -> int:
        """Return about what an event comes to in the prompt. Only what stands where a picture is read counts as one."""
        item = event.get("item")
        content = item.get("content") if isinstance(item, dict) else None
        parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        pictures = [part.get("image_url") for part in parts if part.get("type") == PICTURE]
        carried = sum(len(one) for one in pictures if isinstance(one, str) and one.startswith("data:image/"))
        return (len(payload) - carried) // BYTES_PER_TOKEN + len(pictures) * self._per_picture

    def _most(self, holder: Any) -> int | None:
        """Return the most tokens of an answer that a response or a session names; None: it names none."""
        if not isinstance(holder, dict) or not any(name in holder for name in BOUNDS):
            return None
        most = 0
        for name in BOUNDS:
            found = holder.get(name, 1)
            good = isinstance(found, int) and not isinstance(found, bool) and found > 0
            # `inf` and what is no number bound nothing.
            most = max(most, found if good else self._use.assumed)
        return most

    def _widen(self, most: int) -> None:
        """Reserve for a longer answer before the provider can begin one."""
        if most > self._bound:
            self._bound = most
            self._use.bounded(most)

    def _provider_event(self, payload: bytes) -> None:
        """Note what an event tells of the answer."""
        head = payload[:HEAD]
        # Other events may have a text of the client's that says so.
        if b'"response.done"' in head and _read_event(payload).get("type", OVER) == OVER:
            self._use.done(payload)
        elif b'"response.created"' in head:
            self._use.begun()
        elif b'audio.delta"' in head:
            self._use.heard(len(payload) * 3 // 4 // ANSWER_SOUND_BYTES + 1)
        elif b'.delta"' in head and b'transcript.delta"' not in head:
            self._use.heard(len(str(_read_event(payload).get("delta"))) // BYTES_PER_TOKEN + 1)
        elif b'"session.created"' in head or b'"session.updated"' in head:
            most = self._most(_read_event(payload).get("session"))
            if most is not None:
                self._bound = most
                self._use.bounded(most)
        elif b'"error"' in head:
            self._refused(_read_event(payload))

    def _refused(self, event: dict[str, Any]) -> None:
        """Note an answer that was asked for and will not come."""
        error = event.get("error")
        if event.get("type") != "error" or not isinstance(error, dict):
            return
        name = error.get("event_id")
        if isinstance(name, str):
            self._use.refused(name)
        elif error.get("code") == BUSY or str(error.get("param")).startswith("response"):
            self._use.refused(None)

    def _end(self) -> None:
        """Tell both sides, and end."""
        self._over = True
        error = {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": SPENT, "param": None}
        told = frame(orjson.dumps({"type": "error", "error": error}))
        told += frame(POLICY.to_bytes(2, "big") + SPENT.encode(), CLOSE)
        self._tunnel.tunnel_send(frame(NORMAL.to_bytes(2, "big"), CLOSE, os.urandom(4)), told)
        self._tunnel.tunnel_end(SPENT)


def _is_long_sound(payload: bytes) -> bool:
    """Tell whether an event that is not read as JSON can be nothing but sound: it has one type, and no escapes."""
    return b"\\" not in payload and payload.count(b'"type"') == 1 and LONG_SOUND.search(payload) is not None


def _is_long_picture(payload: bytes) -> bool:
    """Tell whether an event may have a long picture, and has few values beside: base64 has none of what begins one."""
    if len(payload) > LONG_PICTURE or b'"input_image"' not in payload:
        return False
    return sum(map(payload.count, (b"{", b"[", b","))) <= MOST_VALUES


def _read_event(payload: bytes) -> dict[str, Any]:
    """Return an event, an empty one for what is none or is long."""
    if len(payload) > LONG_EVENT and not _is_long_picture(payload):
        return {}
    try:
        found = orjson.loads(payload)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
