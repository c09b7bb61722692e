"""Realtime conversations through guards.

Text that a user sends is judged before it goes on; text that a model says waits in windows, as on streams. Masks let
pass what they match, or, with `masks: Apply`, take its place. Audio, transcripts and everything else pass at once.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from headgate.backend.llm.guards.contract import Refused
from headgate.dialect.llm.transcript.edit import Changes
from headgate.dialect.llm.transcript.table import request_texts
from headgate_engine.guard.stream import StreamGuard
from headgate_engine.websocket.frames import CLOSE, TEXT, FrameError, FrameReader, frame

LIMIT: Final = 2 * 1024 * 1024
DELTAS: Final = ("response.output_text.delta", "response.text.delta")
ENDS: Final = ("response.output_text.done", "response.text.done")
# What repeats a refused text whole.
REPEATS: Final = (
    *DELTAS, *ENDS, "response.content_part.done", "response.output_item.done", "conversation.item.done",
    "conversation.item.created", "conversation.item.added",
)  # fmt: skip
ITEM: Final = "conversation.item.create"
OVER: Final = "response.done"
CANCEL: Final = b'{"type":"response.cancel"}'
UNREADABLE: Final = "the frames of a guarded conversation cannot be read"
Json = dict[str, Any]
Verdict = Refused | None
# What becomes of an event of a user: it may go on, it may go on like this, or it may not.
Said = Refused | bytes | None


class Tunnel(Protocol):
    """Both connections of a conversation (headgate_engine.link.forward.Exchange)."""

    def tunnel_send(self, to_upstream: bytes, to_client: bytes) -> None:
        """Send what may go on."""

    def tunnel_hold(self, client: bool, held: bool) -> None:
        """Stop or go on reading a side."""

    def tunnel_end(self, detail: str) -> None:
        """Close both."""


@dataclass(frozen=True, slots=True)
class Judges:
    """Who judges. `said(event)`: what a user says, None without such guards; `window(texts)`: what a model says.

    `message`: what the client is told; `spawn(name, coroutine)`: runs what has to wait. Windows in bytes of text.
    `masker`: makes what masks the texts of a model, None: nothing does; `masked()` is called when it first did.
    """

    said: Callable[[bytes], Said | Awaitable[Said]] | None
    window: Callable[[list[bytes]], Verdict | Awaitable[Verdict]] | None
    message: Callable[[Refused], str]
    spawn: Callable[[str, Coroutine[Any, Any, None]], Any]
    size: int
    overlap: int
    masker: Callable[[], StreamGuard] | None = None
    masked: Callable[[], None] = lambda: None


@dataclass(slots=True)
class _Text:
    """A text that the model is saying: what was let go of it, and the events that wait, each behind its frames."""

    tail: bytes = b""
    new: bytearray = field(default_factory=bytearray)
    events: list[tuple[bytes, bytes]] = field(default_factory=list)


class GuardedTunnel:
    """One conversation. Each side is read in order: what comes while a guard is asked waits."""

    def __init__(self, tunnel: Tunnel, judges: Judges) -> None:
        self._tunnel = tunnel
        self._judges = judges
        self._readers = {True: FrameReader(True, LIMIT), False: FrameReader(False, LIMIT)}
        self._waiting: dict[bool, deque[tuple[int, bytes, bytes]]] = {True: deque(), False: deque()}
        self._tasks: dict[bool, Any] = {}
        self._texts: dict[tuple[str, int], _Text] = {}
        self._blocked = False
        self._told = False        # that something was masked
        self._masker = judges.masker and judges.masker()

    def from_client(self, data: bytes) -> None:
        """Take bytes of the client."""
        self._take(True, data)

    def from_upstream(self, data: bytes) -> None:
        """Take bytes of the provider."""
        self._take(False, data)

    def closed(self) -> None:
        """The conversation is over."""
        for task in self._tasks.values():
            task.cancel()

    def _take(self, client: bool, data: bytes) -> None:
        try:
            self._waiting[client].extend(self._readers[client].feed(data))
        except FrameError as error:
            # What cannot be read cannot be judged, so it does not pass.
            self._tunnel.tunnel_end(f"{UNREADABLE}: {error}")
            return
        if client not in self._tasks:
            self._run(client)

    def _run(self, client: bool) -> None:
        queue = self._waiting[client]
        while queue:
            opcode, said, raw = queue.popleft()
            if opcode != TEXT:
                if opcode == CLOSE and not client and self._masker is not None:
                    self._masker.end()
                    self._take_masked(self._masker)
                self._send(client, raw)
                continue
            found = self._event(client, said, raw)
            if found is not None:
                self._tunnel.tunnel_hold(client, True)
                self._tasks[client] = self._judges.spawn("realtime guard", self._wait(client, found))
                return

    async def _wait(self, client: bool, found: Awaitable[None]) -> None:
        try:
            await found
        except Exception:  # goes on to the task's boundary
            # What was not judged does not pass, and nobody will judge it any more.
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

    def _event(self, client: bool, said: bytes, raw: bytes) -> Awaitable[None] | None:
        """Deal with one event; an awaitable when a guard has to be waited for."""
        try:
            told = json.loads(said)
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            self._send(client, raw)
            return None
        if not client:
            return self._from_model(told, said, raw)
        if self._judges.said is None or told.get("type") != ITEM:
            self._send(True, raw)
            return None
        try:
            return self._from_user(said, raw)
        except ValueError as error:
            # Python reads JSON that is none to others, or is nested past all measure.
            self._tunnel.tunnel_end(f"{UNREADABLE}: {error}")
            return None

    # -- what a user says ----------------------------------------------------------------------------------------------
    def _from_user(self, said: bytes, raw: bytes) -> Awaitable[None] | None:
        event = user_event(said)
        if event is None or self._judges.said is None:
            self._send(True, raw)
            return None
        found = self._judges.said(event)
        if isinstance(found, Awaitable):
            return self._user_later(found, raw)
        self._user_judged(found, raw)
        return None

    async def _user_later(self, found: Awaitable[Said], raw: bytes) -> None:
        self._user_judged(await found, raw)

    def _user_judged(self, found: Said, raw: bytes) -> None:
        if isinstance(found, Refused):
            self._tunnel.tunnel_send(b"", self._error(found))
        else:
            self._send(True, raw if found is None else frame(found, mask=os.urandom(4)))

    def _error(self, refused: Refused) -> bytes:
        message = self._judges.message(refused)
        error = {"type": "guardrail_blocked", "code": "guardrail_intervention", "message": message}
        return _told({"type": "error", "error": error})

    # -- what a model says ---------------------------------------------------------------------------------------------
    def _from_model(self, told: Json, said: bytes, raw: bytes) -> Awaitable[None] | None:
        kind = told.get("type")
        if self._blocked:
            self._after_block(kind, told, raw)
            return None
        if self._judges.window is not None and kind == OVER:
            return self._close((raw, said))
        if self._judges.window is None or (kind not in DELTAS and kind not in ENDS):
            self._let_go([(raw, said)])
            return None
        key = (str(told.get("item_id")), told.get("content_index") or 0)
        text = self._texts.setdefault(key, _Text())
        text.events.append((raw, said))
        if kind in ENDS:
            # A model that says all at once sends no delta before.
            if not text.tail and not text.new:
                text.new += str(told.get("text") or "").encode()
            del self._texts[key]
            return self._judge(text)
        text.new += str(told.get("delta") or "").encode()
        return self._judge(text) if len(text.new) >= self._judges.size else None

    def _close(self, event: tuple[bytes, bytes]) -> Awaitable[None] | None:
        """The response is over: what still waits is judged as one text, in front of its last event."""
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
        self._masker = self._judges.masker and self._judges.masker()        # what waits in it is of the refused text
        self._tunnel.tunnel_send(frame(CANCEL, mask=os.urandom(4)), self._error(found))

    def _let_go(self, events: list[tuple[bytes, bytes]]) -> None:
        """Hand events to the masks, or to the client."""
        if self._masker is None:
            self._send(False, b"".join(raw for raw, _ in events))
            return
        for raw, said in events:
            self._masker.message(raw, said)
        self._take_masked(self._masker)

    def _take_masked(self, masker: StreamGuard) -> None:
        if masker.masks and not self._told:
            self._told = True
            self._judges.masked()
        found = masker.take()
        if found:
            self._send(False, found)

    def _after_block(self, kind: Any, told: Json, raw: bytes) -> None:
        """Nothing of a refused response's text passes; with its end the next response is a new one."""
        if kind in REPEATS:
            return
        if kind == OVER:
            self._blocked = False
            response = told.get("response")
            if isinstance(response, dict):
                response["output"] = []
                raw = _told(told)
        self._send(False, raw)


def _told(event: Json) -> bytes:
    return frame(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode())


def user_event(event: bytes) -> bytes | None:
    """Return a client's event with what it has a user say trimmed (reference); None when that is nothing.

    ValueError when the event is no JSON object.
    """
    runs = request_texts(event, "realtime").runs
    changes = Changes(event)
    said = False
    for run in runs:
        text = run.text(event)
        start, stop = len(text) - len(text.lstrip()), len(text.rstrip())
        said = said or stop > start
        edits = [edit for edit in ((0, start, b""), (max(start, stop), len(text), b"")) if edit[0] < edit[1]]
        if edits and stop > start:
            changes.text(run.pieces, run.joiner, edits)
    if not said:
        return None
    return changes.done() if changes else event


def whole_letters(text: bytes) -> bytes:
    """Return UTF-8 without the rest of a letter that it begins with."""
    start = 0
    while start < min(3, len(text)) and text[start] & 0xC0 == 0x80:
        start += 1
    return text[start:]
