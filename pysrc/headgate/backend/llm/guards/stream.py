"""Guards for streamed responses: text is checked in windows and masked on the way."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from headgate.backend.llm.guards.contract import GuardRefusal
from headgate.dialect.llm import faults
from headgate_engine.guard.scan import Scanner
from headgate_engine.guard.stream import StreamGuard
from headgate_engine.llm.eventstream import EventStreamError
from headgate_engine.sse.decode import SseError

FAILED = "Content blocked by guardrail policy"
Judge = Callable[[list[bytes]], GuardRefusal | Awaitable[GuardRefusal | None] | None]


def block_event(form: str, message: str) -> bytes:
    """Return the event that ends a stream with an error in the client's format."""
    if form == "converse":
        return faults.stream_event(form, faults.LlmFault("guardrail_blocked", message))
    error = {"type": "guardrail_blocked", "code": "guardrail_intervention", "message": message}
    name = b"event: error\n" if form in ("messages", "responses") else b""
    data: dict[str, Any] = {"error": error}
    if form == "messages":
        data = {"type": "error", "error": error}
    elif form == "responses":
        data = {"type": "error", "code": error["code"], "message": message, "param": None, "error": error}
    return name + b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


class GuardedStream:
    """One streamed response. Calls return the bytes for the client, or an awaitable of them; one call at a time.

    `judge(texts)` returns the refusal of a window; `message` returns the client's message for a refusal.
    """

    def __init__(
        self, guard: StreamGuard, judge: Judge, message: Callable[[GuardRefusal], str], masked: Callable[[], None]
    ) -> None:
        self._guard = guard
        self._judge = judge
        self._message = message
        self._masked = masked
        self._told = 0

    @property
    def blocked(self) -> bool:
        """True if a guard has ended the stream: the rest of the upstream's response is not needed."""
        return self._guard.blocked

    def feed(self, data: bytes) -> bytes | Awaitable[bytes]:
        """Take bytes from the upstream."""
        if self._guard.blocked:
            return b""
        try:
            self._guard.feed(data)
        except (SseError, EventStreamError):
            self._guard.block(block_event(self._guard.format, FAILED))
        return self._go_on()

    def end(self) -> bytes | Awaitable[bytes]:
        """Process the end of the upstream's response, complete or truncated."""
        self._guard.end()
        return self._go_on()

    def _go_on(self) -> bytes | Awaitable[bytes]:
        while self._guard.due:
            found = self._judge(self._guard.texts())
            if isinstance(found, Awaitable):
                return self._wait(found)
            self._decide(found)
        return self._take()

    async def _wait(self, found: Awaitable[GuardRefusal | None]) -> bytes:
        self._decide(await found)
        while self._guard.due:
            again = self._judge(self._guard.texts())
            self._decide(await again if isinstance(again, Awaitable) else again)
        return self._take()

    def _decide(self, refused: GuardRefusal | None) -> None:
        if refused is None:
            self._guard.passed()
        else:
            self._guard.block(block_event(self._guard.format, self._message(refused)))

    def _take(self) -> bytes:
        if self._guard.masks > self._told:
            if not self._told:
                self._masked()
            self._told = self._guard.masks
        return self._guard.take()


def machine(form: str, judged: bool, scanner: Scanner | None, sizes: tuple[int, int]) -> StreamGuard:
    """Return the engine's filter that holds events back. `sizes`: window and overlap in bytes of text."""
    window, overlap = sizes
    return StreamGuard(form, judged=judged, scanner=scanner, window=window, overlap=overlap)
