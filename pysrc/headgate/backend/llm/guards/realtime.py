"""Guards for realtime conversations (WebSocket).

What a client says, a user's text or other instructions, is checked before it is forwarded; a model's text is held back
in windows, as in streams. Texts that only masks match are forwarded unchanged or, with `masks: Apply`, masked. Audio, a
model's transcripts and events without text are forwarded at once; a client's events of unknown types are refused.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import field
from typing import Any, Final, Protocol

from headgate.backend.llm.guards.contract import GuardRefusal
from headgate.backend.llm.off_loop import LONG_BYTES, off_loop
from headgate.dialect.llm.transcript.edit import Changes
from headgate.dialect.llm.transcript.table import request_texts
from headgate.document.lazy_dataclass import dataclass
from headgate_engine.guard.readers import event_types
from headgate_engine.guard.stream import StreamGuard
from headgate_engine.llm.translate.readers import Garbage
from headgate_engine.llm.translate.sliced import load_sliced
from headgate_engine.websocket.frames import BINARY, CLOSE, TEXT, FrameError, FrameReader, frame

LIMIT: Final = 2 * 1024 * 1024
# Events of one side that are processed without a pause.
TURN: Final = 128
DELTAS: Final = ("response.output_text.delta", "response.text.delta")
ENDS: Final = ("response.output_text.done", "response.text.done")
# Events that repeat a refused text.
REPEATS: Final = (
    *DELTAS, *ENDS, "response.content_part.done", "response.output_item.done", "conversation.item.done",
    "conversation.item.created", "conversation.item.added",
)  # fmt: skip
# A client's events with texts (headgate_engine.guard.readers), and those without.
SAYING: Final = frozenset((
    "conversation.item.create", "response.create", "session.update", "transcription_session.update",
))  # fmt: skip
SILENT: Final = frozenset((
    "conversation.item.delete", "conversation.item.retrieve", "conversation.item.truncate", "input_audio_buffer.append",
    "input_audio_buffer.clear", "input_audio_buffer.commit", "output_audio_buffer.clear", "response.cancel",
))  # fmt: skip
UNKNOWN: Final = "events of this type cannot be checked"
OVER: Final = "response.done"
CANCEL: Final = b'{"type":"response.cancel"}'
UNREADABLE: Final = "the frames of a guarded conversation cannot be read"
Json = dict[str, Any]
Verdict = GuardRefusal | None
# The verdict on a user's event: None forwards it, bytes replace it, Refused drops it.
EventVerdict = GuardRefusal | bytes | None


class RealtimeTunnel(Protocol):
    """Both connections of a conversation (headgate_engine.link.tunnel.StreamTunnel)."""

    def tunnel_send(self, to_upstream: bytes, to_client: bytes) -> None:
        """Send bytes to both sides."""

    def tunnel_hold(self, client: bool, held: bool) -> None:
        """Pause or resume reading from a side."""

    def tunnel_end(self, detail: str) -> None:
        """Close both connections."""


@dataclass(frozen=True, slots=True)
class Judges:
    """The checks of a conversation. `check_event` checks a user event, None without request guards; `window(texts)`
    checks a window of the model's text, None without response guards.

    `message` returns the client's message for a refusal; `spawn(name, coroutine)` starts a task. `size` and `overlap`
    are the window and its overlap in bytes of text. `masker` makes the filter that masks the model's text, None without
    masks; `masked()` is called at the first mask.
    """

    check_event: Callable[[bytes], EventVerdict | Awaitable[EventVerdict]] | None
    window: Callable[[list[bytes]], Verdict | Awaitable[Verdict]] | None
    message: Callable[[GuardRefusal], str]
    spawn: Callable[[str, Coroutine[Any, Any, None]], Any]
    size: int
    overlap: int
    masker: Callable[[], StreamGuard] | None = None
    masked: Callable[[], None] = lambda: None


@dataclass(slots=True)
class _Text:
    """An unfinished text of the model: the end of its forwarded part, the unchecked rest, and the events held back with
    their frames.
    """

    tail: bytes = b""
    new: bytearray = field(default_factory=bytearray)
    events: list[tuple[bytes, bytes]] = field(default_factory=list)


class GuardedTunnel:
    """One conversation. Events of each side are processed in order: while a guard runs, later ones wait."""

    def __init__(self, tunnel: RealtimeTunnel, judges: Judges) -> None:
        self._tunnel = tunnel
        self._judges = judges
        self._readers = {True: FrameReader(True, LIMIT), False: FrameReader(False, LIMIT)}
        self._waiting: dict[bool, deque[tuple[int, bytes, bytes]]] = {True: deque(), False: deque()}
        self._tasks: dict[bool, Any] = {}
        self._texts: dict[tuple[str, int], _Text] = {}
        self._blocked = False
        self._event_frame = False        # True once a mask was reported
        self._masker = judges.masker and judges.masker()

    def from_client(self, data: bytes) -> None:
        """Take bytes from the client."""
        self._take(True, data)

    def from_upstream(self, data: bytes) -> None:
        """Take bytes from the provider."""
        self._take(False, data)

    def closed(self) -> None:
        """Cancel the tasks: the conversation has ended."""
        for task in self._tasks.values():
            task.cancel()

    def _take(self, client: bool, data: bytes) -> None:
        try:
            self._waiting[client].extend(self._readers[client].feed(data))
        except FrameError as error:
            # Unreadable frames cannot be checked, so the conversation ends.
            self._tunnel.tunnel_end(f"{UNREADABLE}: {error}")
            return
        if client not in self._tasks:
            self._run(client)

    def _run(self, client: bool) -> None:
        queue = self._waiting[client]
        left = TURN
        while queue:
            if not left:
                self._pause(client, asyncio.sleep(0))        # others have their turn
                return
            left -= 1
            opcode, payload, raw = queue.popleft()
            if opcode == BINARY and client and self._judges.check_event is not None:
                # Realtime events are texts: what is payload in another form would reach the provider unjudged.
                self._tunnel.tunnel_end(f"{UNREADABLE}: a binary message")
                return
            if opcode != TEXT:
                if opcode == CLOSE and not client and self._masker is not None:
                    self._masker.end()
                    self._take_masked(self._masker)
                self._send(client, raw)
                continue
            event = self._long_event if self._is_long(client, payload) else self._event
            found = event(client, payload, raw)
            if found is not None:
                self._pause(client, found)
                return

    def _pause(self, client: bool, found: Awaitable[None]) -> None:
        """Go on with later events of a side when `found` is done."""
        self._tunnel.tunnel_hold(client, True)
        self._tasks[client] = self._judges.spawn("realtime guard", self._wait(client, found))

    async def _wait(self, client: bool, found: Awaitable[None]) -> None:
        try:
            await found
        except Exception:  # task boundary: logged there
            # The event was not checked, and it will not be: it must not be forwarded.
            self._tunnel.tunnel_end("a guard failed")
            raise
        del self._tasks[client]
        self._run(client)
        if client not in self._tasks:
            self._tunnel.tunnel_hold(client, False)

    def _send(self, client: bool, raw: bytes) -> None:
        if client:
            self._tunnel.tunnel_send(raw, b"")
        else:
            self._tunnel.tunnel_send(b"", raw)

    def _event(self, client: bool, payload: bytes, raw: bytes) -> Awaitable[None] | None:
        """Process one event; return an awaitable if a guard must wait for a service."""
        if client:
            try:
                return self._from_user(payload, raw)
            except ValueError as error:
                # What is no event, what other parsers reject, or what is nested too deeply.
                self._tunnel.tunnel_end(f"{UNREADABLE}: {error}")
                return None
        return self._from_model(read_model_event(payload), payload, raw)

    def _is_long(self, client: bool, payload: bytes) -> bool:
        """Return True if reading an event would block the event loop for too long, and it must be read."""
        if len(payload) <= LONG_BYTES:
            return False
        if client:
            return self._judges.check_event is not None
        return self._judges.window is not None or self._masker is not None

    async def _long_event(self, client: bool, payload: bytes, raw: bytes) -> None:
        """Process one long event, which is read in a thread."""
        if client:
            try:
                types, event = await off_loop(read_user_event, payload)
                found = self._user_read(types, event, raw)
            except ValueError as error:
                self._tunnel.tunnel_end(f"{UNREADABLE}: {error}")
                return
        else:
            found = self._from_model(await off_loop(read_model_event, payload), payload, raw)
        if found is not None:
            await found

    # -- user ----------------------------------------------------------------------------------------------------------
    def _from_user(self, payload: bytes, raw: bytes) -> Awaitable[None] | None:
        if self._judges.check_event is None:
            self._send(True, raw)
            return None
        return self._user_read(*read_user_event(payload), raw)

    def _user_read(self, types: list[str | None], event: bytes | None, raw: bytes) -> Awaitable[None] | None:
        """Process an event that read_user_event() has read."""
        assert self._judges.check_event is not None
        # Of several types, the provider may read any.
        if len(types) == 1 and types[0] in SILENT:
            self._send(True, raw)
            return None
        if len(types) != 1 or types[0] not in SAYING:
            self._tunnel.tunnel_send(b"", _error_frame(UNKNOWN))
            return None
        if event is None:
            self._send(True, raw)
            return None
        found = self._judges.check_event(event)
        if isinstance(found, Awaitable):
            return self._user_later(found, raw)
        self._user_judged(found, raw)
        return None

    async def _user_later(self, found: Awaitable[EventVerdict], raw: bytes) -> None:
        self._user_judged(await found, raw)

    def _user_judged(self, found: EventVerdict, raw: bytes) -> None:
        if isinstance(found, GuardRefusal):
            self._tunnel.tunnel_send(b"", self._error(found))
        else:
            self._send(True, raw if found is None else frame(found, mask=os.urandom(4)))

    def _error(self, refused: GuardRefusal) -> bytes:
        return _error_frame(self._judges.message(refused))

    # -- model ---------------------------------------------------------------------------------------------------------
    def _from_model(self, told: Json | None, payload: bytes, raw: bytes) -> Awaitable[None] | None:
        if told is None:
            self._send(False, raw)
            return None
        kind = told.get("type")
        if self._blocked:
            self._after_block(kind, told, raw)
            return None
        if self._judges.window is not None and kind == OVER:
            return self._close((raw, payload))
        if self._judges.window is None or (kind not in DELTAS and kind not in ENDS):
            self._let_go([(raw, payload)])
            return None
        key = (str(told.get("item_id")), told.get("content_index") or 0)
        text = self._texts.setdefault(key, _Text())
        text.events.append((raw, payload))
        if kind in ENDS:
            # A model that sends a text at once sends no delta event before.
            if not text.tail and not text.new:
                text.new += str(told.get("text") or "").encode()
            del self._texts[key]
            return self._judge(text)
        text.new += str(told.get("delta") or "").encode()
        return self._judge(text) if len(text.new) >= self._judges.size else None

    def _close(self, event: tuple[bytes, bytes]) -> Awaitable[None] | None:
        """Check the remaining texts of a finished response as one text, before its last event is forwarded."""
        texts = [text for text in self._texts.values() if text.events]
        self._texts.clear()
        last = _Text()
        for text in texts:
            last.new += text.tail + text.new
            last.events += text.events
        last.events.append(event)
        return self._judge(last)

    def _judge(self, text: _Text) -> Awaitable[None] | None:
        if not text.new:
            self._judged(None, text)
            return None
        assert self._judges.window is not None
        found = self._judges.window([text.tail + bytes(text.new)])
        if isinstance(found, Awaitable):
            return self._model_later(found, text)
        self._judged(found, text)
        return None

    async def _model_later(self, found: Awaitable[Verdict], text: _Text) -> None:
        self._judged(await found, text)

    def _judged(self, found: Verdict, text: _Text) -> None:
        if found is None:
            self._let_go(text.events)
            text.tail = whole_letters((text.tail + bytes(text.new))[-self._judges.overlap :])
            text.new.clear()
            text.events.clear()
            return
        self._blocked = True
        self._texts.clear()
        self._masker = self._judges.masker and self._judges.masker()        # drops the refused text that it holds
        self._tunnel.tunnel_send(frame(CANCEL, mask=os.urandom(4)), self._error(found))

    def _let_go(self, events: list[tuple[bytes, bytes]]) -> None:
        """Pass events to the masks or, without masks, to the client."""
        if self._masker is None:
            self._send(False, b"".join(raw for raw, _ in events))
            return
        for raw, payload in events:
            self._masker.message(raw, payload)
        self._take_masked(self._masker)

    def _take_masked(self, masker: StreamGuard) -> None:
        if masker.masks and not self._event_frame:
            self._event_frame = True
            self._judges.masked()
        found = masker.take()
        if found:
            self._send(False, found)

    def _after_block(self, kind: Any, told: Json, raw: bytes) -> None:
        """Drop events with text of a refused response; the end of the response ends the block."""
        if kind in REPEATS:
            return
        if kind == OVER:
            self._blocked = False
            response = told.get("response")
            if isinstance(response, dict):
                response["output"] = []
                raw = _event_frame(told)
        self._send(False, raw)


def _error_frame(message: str) -> bytes:
    error = {"type": "guardrail_blocked", "code": "guardrail_intervention", "message": message}
    return _event_frame({"type": "error", "error": error})


def _event_frame(event: Json) -> bytes:
    return frame(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode())


def read_user_event(event: bytes) -> tuple[list[str | None], bytes | None]:
    """Return the types of a client's event, each time that `type` stands there, and what user_event() returns of an
    event that may have texts.

    Raises ValueError if the event is not a JSON object.
    """
    types = event_types(event)
    return types, user_event(event) if len(types) == 1 and types[0] in SAYING else None


def read_model_event(event: bytes) -> Json | None:
    """Return the JSON of a provider's event, None if it is no object."""
    told: Any
    try:
        told = load_sliced(event) if len(event) > LONG_BYTES else json.loads(event)
    except Garbage:
        told = _python_json(event)
    except (ValueError, RecursionError):
        told = None
    return told if isinstance(told, dict) else None


def _python_json(event: bytes) -> Any:
    """Return what Python's parser makes of JSON that stricter ones refuse (NaN), None if it is not JSON to either."""
    try:
        return json.loads(event)
    except (ValueError, RecursionError):
        return None


def user_event(event: bytes) -> bytes | None:
    """Return the event with the user's texts trimmed, None if all of them are empty.

    Raises ValueError if the event is not a JSON object.
    """
    runs = request_texts(event, "realtime").runs
    changes = Changes(event)
    has_text = False
    for run in runs:
        text = run.text(event)
        start, stop = len(text) - len(text.lstrip()), len(text.rstrip())
        has_text = has_text or stop > start
        edits = [edit for edit in ((0, start, b""), (max(start, stop), len(text), b"")) if edit[0] < edit[1]]
        if edits and stop > start:
            changes.text(run.pieces, run.joiner, edits)
    if not has_text:
        return None
    return changes.done() if changes else event


def whole_letters(text: bytes) -> bytes:
    """Return UTF-8 text without the incomplete character at its beginning."""
    start = 0
    while start < min(3, len(text)) and text[start] & 0xC0 == 0x80:
        start += 1
    return text[start:]
