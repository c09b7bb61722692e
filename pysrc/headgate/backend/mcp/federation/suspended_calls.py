"""Suspended calls: calls at servers with sessions that wait for a client without one.

The server has sent a request for the client; the client receives it as a result, and its next request contains the
answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Final

from headgate.backend.mcp.failure import McpFailure, NoAnswer, TargetFailure
from headgate.backend.mcp.federation.link import Link
from headgate.backend.mcp.federation.target_answer import NO_ANSWER, Fields, StreamClosed
from headgate.crypto.sealed import Sealer
from headgate.dialect.mcp import elicitation
from headgate.dialect.mcp.jsonrpc import INVALID_PARAMS, NotAMessage, RpcKind, RpcMessage, parse
from headgate.dialect.mcp.methods import PROGRESS
from headgate.document.lazy_dataclass import dataclass
from headgate.net.tasks import spawn

logger = logging.getLogger("headgate.mcp")

# Time for a client to answer, and maximum number of suspended calls per backend and worker.
HOLD_SECONDS: Final = 300.0
MAX_SUSPENDED: Final = 256
MAX_QUESTIONS: Final = 64
# Maximum number of the server's messages that are read in advance.
QUEUE: Final = 2
# Requests of the server that follow each other within this time go to the client together.
TOGETHER_SECONDS: Final = 0.02
# Time for a server to open its event stream; after it the call starts without.
STREAM_SECONDS: Final = 1.0
# Prefix of the gateway's states, to distinguish them from those of servers of revision 2026-07-28.
STATE_PREFIX: Final = "gwr."
KEY_BYTES: Final = 16
# Notifications on the server's event stream that belong to a call.
OURS: Final = frozenset((PROGRESS, "notifications/message"))


@dataclass(frozen=True, slots=True)
class SuspendedCallKey:
    """The identity of a suspended call: owner (`owner_of`), target, digest of the request (`elicitation.digest_of`)."""

    owner: str
    target: str
    digest: bytes


class SuspendedCall:
    """A call in progress with a session of its own. `release` ends the session after the call."""

    def __init__(
        self, session: Link, message: RpcMessage, version: str, release: Callable[[Link], Awaitable[None]]
    ) -> None:
        self.session = session
        self.message = message
        self.version = version
        self.questions: dict[str, bytes] = {}
        self._ids: dict[str, bytes] = {}
        self._release = release
        self._numbers = itertools.count(1)
        self._texts: asyncio.Queue[bytes | TargetFailure | None] = asyncio.Queue(QUEUE)
        self._readers: list[asyncio.Task[None]] = []
        self._streaming = asyncio.Event()

    async def begin(self, message: RpcMessage, fields: Fields) -> None:
        """Send the request. The event stream is opened first, because some servers send their requests there."""
        self._readers.append(spawn("mcp stream", self._read_stream(fields)))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STREAM_SECONDS):
                await self._streaming.wait()
        self._readers.append(spawn("mcp call", self._answer(message, fields)))

    async def _read_stream(self, fields: Fields) -> None:
        try:
            texts = await self.session.events(fields)
        except TargetFailure:
            texts = None
        finally:
            self._streaming.set()
        if texts is None:
            return
        with contextlib.suppress(TargetFailure):
            async with contextlib.aclosing(texts):
                async for text in texts:
                    if _is_ours(text):
                        await self._texts.put(text)

    async def _answer(self, message: RpcMessage, fields: Fields) -> None:
        end: TargetFailure | None = None
        try:
            async with contextlib.aclosing(self.session.request(message, fields)) as texts:
                async for text in texts:
                    if not isinstance(text, StreamClosed):
                        await self._texts.put(text)
        except TargetFailure as error:
            end = error
        await self._texts.put(end)

    async def next(self) -> bytes | None:
        """Return the server's next message, None if it waits for answers; raises TargetFailure after the end,
        NoAnswer without a response."""
        try:
            async with asyncio.timeout(TOGETHER_SECONDS if self.questions else None):
                found = await self._texts.get()
        except TimeoutError:
            return None
        if isinstance(found, TargetFailure):
            raise found
        if found is None:
            raise NoAnswer(NO_ANSWER)
        return found

    def add(self, question: RpcMessage) -> bool:
        """Store a request of the server for the client; return False if there are too many."""
        if len(self.questions) >= MAX_QUESTIONS or question.raw_id is None:
            return False
        key = f"input-{next(self._numbers)}"
        self.questions[key] = elicitation.as_input(question)
        self._ids[key] = question.raw_id
        return True

    async def answer(self, answers: dict[str, bytes], fields: Fields) -> None:
        """Send the client's answers to the server; requests without an answer remain."""
        for key in [key for key in self.questions if key in answers]:
            del self.questions[key]
            await self.session.notify(parse(elicitation.answer(self._ids.pop(key), answers[key])), fields)

    async def refuse(self, fields: Fields) -> None:
        """Decline all requests of the server, so that it continues."""
        self.questions.clear()
        for raw_id in [self._ids.pop(key) for key in list(self._ids)]:
            await self.session.notify(parse(elicitation.refused(raw_id)), fields)

    async def stop(self) -> None:
        """Cancel the call at the server if it is still in progress."""
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self._readers.clear()

    async def end(self) -> None:
        """Cancel the call and end the session."""
        await self.stop()
        await self._release(self.session)


@dataclass(slots=True)
class SuspendedEntry:
    """A suspended call with the timer that ends it."""

    call: SuspendedCall
    place: SuspendedCallKey
    timer: asyncio.TimerHandle


class SuspendedCalls:
    """The suspended calls of one backend in one worker.

    `sealer` seals states with a key that all workers have; `hold_s` is their lifetime in seconds.
    """

    def __init__(
        self,
        sealer: Sealer,
        worker: int,
        hold_s: float = HOLD_SECONDS,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._sealer = sealer
        self._worker = worker
        self._hold_s = hold_s
        self._clock = clock
        self._waiting: dict[bytes, SuspendedEntry] = {}
        self._full = False

    def __len__(self) -> int:
        return len(self._waiting)

    def worker_of(self, state: str) -> int | None:
        """Return the worker with the call of a state, None if the state is not the gateway's.

        Raises McpFailure if the state has expired or was modified.
        """
        return None if not state.startswith(STATE_PREFIX) else self._opened(state)[0]

    def _opened(self, state: str) -> tuple[int, bytes]:
        content = self._sealer.open(state[len(STATE_PREFIX) :])
        if content is None or len(content) != 2 + 8 + KEY_BYTES:
            raise McpFailure(400, "requestState does not belong to this backend", INVALID_PARAMS)
        if self._clock() * 1000 >= int.from_bytes(content[2:10]):
            reason = f"requestState has expired: answers must come within {self._hold_s:g} s; call again without it"
            raise McpFailure(400, reason, INVALID_PARAMS)
        return int.from_bytes(content[:2]), content[10:]

    def keep(self, call: SuspendedCall, place: SuspendedCallKey) -> str | None:
        """Store a call until its client continues it; return its state, None if there are too many calls."""
        if len(self._waiting) >= MAX_SUSPENDED:
            if not self._full:
                logger.warning("too many calls wait for their clients", extra={"target": place.target})
            self._full = True
            return None
        self._full = False
        key = secrets.token_bytes(KEY_BYTES)
        timer = asyncio.get_running_loop().call_later(self._hold_s, self._expire, key)
        self._waiting[key] = SuspendedEntry(call, place, timer)
        until = int((self._clock() + self._hold_s) * 1000)
        return STATE_PREFIX + self._sealer.seal(self._worker.to_bytes(2) + until.to_bytes(8) + key)

    def _expire(self, key: bytes) -> None:
        waiting = self._waiting.pop(key, None)
        if waiting is not None:
            logger.info("call ended: no answer of the client", extra={"target": waiting.place.target})
            spawn("mcp held", waiting.call.end())

    def take(self, state: str, place: SuspendedCallKey) -> SuspendedCall:
        """Remove and return the call of a state; raises McpFailure if there is none that matches the request."""
        if not state.startswith(STATE_PREFIX):
            raise McpFailure(400, "requestState does not belong to this backend", INVALID_PARAMS)
        _, key = self._opened(state)
        waiting = self._waiting.get(key)
        if waiting is None or waiting.place.owner != place.owner:
            raise ended()
        if waiting.place != place:
            raise McpFailure(400, "requestState belongs to another request", INVALID_PARAMS)
        del self._waiting[key]
        waiting.timer.cancel()
        return waiting.call

    async def aclose(self) -> None:
        """End all suspended calls."""
        waiting, self._waiting = list(self._waiting.values()), {}
        for one in waiting:
            one.timer.cancel()
        await asyncio.gather(*(one.call.end() for one in waiting), return_exceptions=True)


def ended() -> McpFailure:
    """Return the error for a state whose call is over: it was continued already, or its worker has ended."""
    reason = "requestState belongs to a call that has ended; call again without it"
    return McpFailure(400, reason, INVALID_PARAMS)


def _is_ours(text: bytes) -> bool:
    """Return True if a message on the event stream of the call's session belongs to the call."""
    try:
        message = parse(text)
    except NotAMessage:
        return False
    return message.kind is RpcKind.REQUEST or message.method in OURS

