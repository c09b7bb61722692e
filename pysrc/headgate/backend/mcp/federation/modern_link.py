"""Presents a server of revision 2026-07-28 to a client with a session. The gateway keeps the session.

Each request carries the data of the client's `initialize`. A server's input request becomes a request to the client,
and the original request is sent again with the answer. Subscriptions become a `subscriptions/listen` while the client
reads its event stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncGenerator
from typing import Any, Final

from headgate.backend.mcp.failure import NoAnswer, OwnFailure, TargetFailure, TargetRefusal
from headgate.backend.mcp.federation.group import outcome_of
from headgate.backend.mcp.federation.link import Link, LinkFactory, ServerLink
from headgate.backend.mcp.federation.target_answer import (
    CANCELLED_CALL,
    NO_ANSWER,
    Fields,
    OnMessage,
    RequestTarget,
    is_response,
)
from headgate.backend.mcp.targets.remote import ClientFields, origin_of
from headgate.dialect.mcp import bridging, elicitation, modern, versions
from headgate.dialect.mcp.jsonrpc import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    RpcKind,
    RpcMessage,
    error_message,
    parse,
    same_id,
)
from headgate.dialect.mcp.methods import CANCELLED, INITIALIZE, LISTEN, MODERN_REQUESTS, TASK_REQUESTS
from headgate.net.tasks import spawn

logger = logging.getLogger("headgate.mcp")

# How often a server may come back with questions about one request.
MAX_ROUNDS: Final = 32
MAX_QUESTIONS: Final = 64
LEAST_PAUSE, MOST_PAUSE = 1.0, 30.0
# Before a request is sent again whose server wanted nothing of the client.
STATE_PAUSE: Final = 0.25


class ModernLink(RequestTarget):
    """`inner` takes requests of revision 2026-07-28. The session stays with its worker: answers of the client must find
    the request that waits for them.
    """

    pinned = True

    def __init__(self, inner: Link) -> None:
        self.name = inner.name
        self.meter = inner.meter
        self.capabilities: dict[str, Any] | None = None
        self._inner = inner
        self._client = bridging.ClientIdentity()
        self._level: str | None = None
        self._subscribed: dict[str, None] = {}
        self._changed = asyncio.Event()
        self._closed = False
        self._numbers = itertools.count(1)
        self._pending_questions: dict[bytes, asyncio.Future[RpcMessage]] = {}
        self._running: dict[object, tuple[RpcMessage, asyncio.Event]] = {}

    @property
    def state(self) -> str | None:
        """None: the session ends with the worker."""
        return None

    @property
    def bridged(self) -> dict[str, Any] | None:
        """The client data of every request. None if the server is a process, which ends with its worker."""
        return None if self._inner.pinned else self._client.meta(None)

    def restore(self, meta: dict[str, Any]) -> None:
        """Continue the session of another worker in its initial state."""
        self._client = bridging.ClientIdentity.of_meta(meta)

    # -- requests ------------------------------------------------------------------------------------------------------
    def reaches(self, method: str | None) -> bool:
        """Tell whether requests with this method go to the server; `initialize` does as `server/discover`."""
        # Tasks of the one kind of revisions are not spoken of in the other (`bridging.OTHER`).
        return method == INITIALIZE or (
            method in MODERN_REQUESTS and method != LISTEN and method not in TASK_REQUESTS
        )

    async def request(self, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield the messages of a request."""
        method = message.method or ""
        if method == INITIALIZE:
            yield await self._initialize(message, fields)
        elif method == "ping":
            yield bridging.result(message, {})
        elif method == "logging/setLevel":
            level = message.decoded_params().get("level")
            self._level = level if isinstance(level, str) else None
            yield bridging.result(message, {})
        elif method in ("resources/subscribe", "resources/unsubscribe"):
            self._subscribe(message.uri or "", method == "resources/subscribe")
            yield bridging.result(message, {})
        elif not self.reaches(method):
            yield error_message(message.raw_id, METHOD_NOT_FOUND, f"method not found: {method[:80]}")
        else:
            cancelled = asyncio.Event()
            key = object()
            self._running[key] = (message, cancelled)
            try:
                async with contextlib.aclosing(self._rounds(message, fields, cancelled)) as texts:
                    async for text in texts:
                        yield text
            finally:
                del self._running[key]

    async def _initialize(self, message: RpcMessage, fields: Fields) -> bytes:
        params = message.decoded_params()
        self._client = bridging.ClientIdentity.of_initialize(params)
        last = b""
        discover = parse(bridging.worded(modern.discover_request(), self._client.meta(None)))
        async with contextlib.aclosing(self._inner.request(discover, worded_fields(fields))) as texts:
            async for text in texts:
                last = text
        outcome = outcome_of(last) if last else None
        if outcome is None or outcome.result is None:
            reason = "there was no answer" if outcome is None else str((outcome.error or {}).get("message"))
            raise TargetFailure(f"server/discover: {reason}")
        if self.meter is not None:
            self.meter.opened(last, versions.MODERN)
        found = bridging.initialize_result(outcome.result, message.protocol_version, self.name)
        self.capabilities = found["capabilities"]
        return bridging.result(message, found)

    async def _rounds(
        self, message: RpcMessage, fields: Fields, cancelled: asyncio.Event
    ) -> AsyncGenerator[bytes, None]:
        """Yield what comes of a request, with the questions of the server in between, and the response last."""
        words = bridging.worded(message, self._client.meta(self._level))
        own = worded_fields(fields)
        for _ in range(MAX_ROUNDS):
            last = b""
            request = parse(words)
            answer = answered(self._inner.request(request, own), request)
            async with contextlib.aclosing(until(answer, cancelled)) as texts:
                async for text in texts:
                    if is_response(text, request):
                        last = text
                    else:
                        yield text
            if not last:
                raise OwnFailure(CANCELLED_CALL) if cancelled.is_set() else NoAnswer(NO_ANSWER)
            wanted = bridging.input_required(last)
            if wanted is None:
                yield bridging.legacy_response(last)
                return
            refusal = self._refusal(message, wanted)
            if refusal is not None:
                yield refusal
                return
            if not wanted.requests:
                # It only wants more time.
                await asyncio.sleep(STATE_PAUSE)
            answers: dict[str, Any] = {}
            for key, question in wanted.requests.items():
                raw_id = b"%d" % next(self._numbers)
                reply = self._pending_questions[raw_id] = asyncio.get_running_loop().create_future()
                try:
                    yield bridging.question(raw_id, question)
                    found = outcome_of((await either(reply, cancelled)).text)
                finally:
                    del self._pending_questions[raw_id]
                if found.result is None:
                    error = found.error or {}
                    yield error_message(
                        message.raw_id, _code(error), str(error.get("message", "the client gave no answer"))
                    )
                    return
                answers[key] = found.result
            words = bridging.again(message, self._client.meta(self._level), answers, wanted.state)
        raise TargetFailure("the server keeps asking for input")

    def _refusal(self, message: RpcMessage, wanted: bridging.BridgedNeeds) -> bytes | None:
        """Return the error for a client that cannot be asked what the server wants to know, None for one that can."""
        if len(wanted.requests) > MAX_QUESTIONS:
            reason = f"the server asks for more than {MAX_QUESTIONS} things at once"
            return error_message(message.raw_id, INTERNAL_ERROR, reason)
        able = self._client.capabilities
        found = (elicitation.cannot_answer(message, question, able) for question in wanted.requests.values())
        return next((one for one in found if one is not None), None)

    async def notify(self, message: RpcMessage, fields: Fields) -> None:
        """Take an answer of the client, or that it cancels a request; nothing else means anything to the server."""
        del fields
        if message.kind is RpcKind.RESPONSE:
            waiting = self._pending_questions.get(message.raw_id or b"")
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif message.method == CANCELLED:
            wanted = message.decoded_params().get("requestId")
            for request, cancelled in self._running.values():
                if same_id(request.raw_id, wanted):
                    cancelled.set()

    # -- subscriptions -------------------------------------------------------------------------------------------------
    def _subscribe(self, uri: str, on: bool) -> None:
        if on:
            self._subscribed[uri] = None
        else:
            self._subscribed.pop(uri, None)
        self._changed.set()

    async def events(self, fields: Fields) -> AsyncGenerator[bytes, None] | None:
        """Return what the server says of the lists and of the resources that the client subscribed to."""
        return self._listened(worded_fields(fields))

    async def _listened(self, fields: Fields) -> AsyncGenerator[bytes, None]:
        pause = LEAST_PAUSE
        while not self._closed:
            self._changed.clear()
            wanted = bridging.listen_filter(self.capabilities, list(self._subscribed))
            if not wanted:
                await self._changed.wait()
                continue
            listen = bridging.listen_request(b'"gw_listen"', wanted, self._client.meta(self._level))
            try:
                async with contextlib.aclosing(until(self._inner.request(listen, fields), self._changed)) as texts:
                    async for text in texts:
                        note = bridging.subscription_notification(text)
                        if note is not None:
                            pause = LEAST_PAUSE
                            yield note
            except TargetFailure as error:
                logger.info("no subscription", extra={"target": self.name, "error": str(error)})
            if not self._changed.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._changed.wait()
                pause = min(pause * 2, MOST_PAUSE)

    async def close(self) -> None:
        """End what is under way."""
        self._closed = True
        self._changed.set()
        for _, cancelled in self._running.values():
            cancelled.set()
        await self._inner.close()


async def until(texts: AsyncGenerator[bytes, None], stop: asyncio.Event) -> AsyncGenerator[bytes, None]:
    """Yield messages until the end or until `stop` is set."""
    stopped = spawn("mcp until", stop.wait())
    try:
        while not stop.is_set():
            following = spawn("mcp next", _next(texts))
            try:
                await asyncio.wait((following, stopped), return_when=asyncio.FIRST_COMPLETED)
                if not following.done() or not (found := following.result()):
                    return
            finally:
                if not following.done():
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)
            if isinstance(found, TargetFailure):
                raise found
            yield found
    finally:
        stopped.cancel()
        await texts.aclose()


async def _next(texts: AsyncGenerator[bytes, None]) -> bytes | TargetFailure:
    """Return the next message, b"" at the end."""
    try:
        return await anext(texts, b"")
    except TargetFailure as error:
        return error


async def answered(texts: AsyncGenerator[bytes, None], request: RpcMessage) -> AsyncGenerator[bytes, None]:
    """Yield the messages of a request. An error response with its own HTTP status counts as a response.

    Raises TargetFailure.
    """
    try:
        async with contextlib.aclosing(texts):
            async for text in texts:
                yield text
    except TargetRefusal as error:
        if not is_response(error.body, request):
            # Also a 404 is none to a session, as there is none.
            raise (OwnFailure if error.of_gateway else TargetFailure)(str(error)) from error
        yield error.body


async def either(answer: asyncio.Future[RpcMessage], stop: asyncio.Event) -> RpcMessage:
    """Return the answer of the client. Raises OwnFailure if `stop` is set first."""
    stopped = spawn("mcp until", stop.wait())
    try:
        await asyncio.wait((answer, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
    if not answer.done():
        raise OwnFailure(CANCELLED_CALL)
    return answer.result()


def worded_fields(fields: Fields) -> ClientFields:
    """Return the header fields of a client in the form of revision 2026-07-28, including its identity."""
    return ClientFields(bridging.fields_for(fields), origin_of(fields))


def _code(error: dict[str, Any]) -> int:
    code = error.get("code")
    return code if isinstance(code, int) else INTERNAL_ERROR


class EitherLink(RequestTarget):
    """A target whose revision is known only after `initialize`. `make(state)` opens the link."""

    def __init__(self, make: LinkFactory, state: str | None) -> None:
        self._use(make(state))
        self.name = self._link.name

    def _use(self, link: Link) -> None:
        self._link = link
        self.direct = link.direct
        self.meter = link.meter

    @property
    def capabilities(self) -> dict[str, Any] | None:
        """The capabilities of the server."""
        return self._link.capabilities

    @capabilities.setter
    def capabilities(self, found: dict[str, Any] | None) -> None:
        self._link.capabilities = found

    @property
    def resume_token(self) -> dict[str, Any] | None:
        """The data from which another worker can continue the session, None if it ends with this worker. `c`: the
        client of a session of the gateway. `o`: the `initialize` for a server whose connection is the session.
        """
        if isinstance(self._link, ModernLink):
            client = self._link.bridged
            return None if client is None else {"c": client}
        opening = self._link.opening if isinstance(self._link, ServerLink) else None
        return None if opening is None else {"o": opening}

    def restore(self, resume_token: dict[str, Any]) -> None:
        """Continue a session from its resume token."""
        if "c" in resume_token:
            link = ModernLink(self._link)
            link.restore(resume_token["c"])
            self._use(link)
        elif "o" in resume_token and isinstance(self._link, ServerLink):
            self._link.restore(resume_token["o"])

    @property
    def pinned(self) -> bool:
        """Whether the session lives in this worker."""
        return self._link.pinned

    @property
    def state(self) -> str | None:
        """The state that another worker needs to continue."""
        return self._link.state

    @property
    def timeout_s(self) -> float | None:
        """The time-out in the policies of the target, in seconds."""
        return self._link.timeout_s

    def reaches(self, method: str | None) -> bool:
        """Tell whether requests with this method go to the server."""
        return self._link.reaches(method)

    def refuses(self, code: object) -> bool:
        """Tell whether an error with this code comes from the gateway."""
        return self._link.refuses(code)

    async def request(self, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield the messages of a request. `initialize` determines the revision of the server."""
        if message.method == INITIALIZE and not isinstance(self._link, ModernLink):
            async for text in self._opened(message, fields):
                yield text
            return
        async with contextlib.aclosing(self._link.request(message, fields)) as texts:
            async for text in texts:
                yield text

    async def ask(self, message: RpcMessage, fields: Fields, on_message: OnMessage) -> RpcMessage:
        """Return the response to a request."""
        if message.method == INITIALIZE:
            return await super().ask(message, fields, on_message)
        return await self._link.ask(message, fields, on_message)

    async def _opened(self, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]:
        refused: TargetRefusal | None = None
        refusal = b""
        try:
            async with contextlib.aclosing(self._link.request(message, fields)) as texts:
                async for text in texts:
                    if is_response(text, message) and bridging.has_no_sessions(200, text):
                        refusal = text
                        break
                    yield text
            if not refusal:
                return
        except TargetRefusal as error:
            if not bridging.has_no_sessions(error.status, error.body):
                raise
            refused = error
        link = ModernLink(self._link)
        try:
            async with contextlib.aclosing(link.request(message, fields)) as texts:
                async for text in texts:
                    yield text
        except TargetFailure:
            # It is no server of the other revision either: its own words say more.
            if refused is not None:
                raise refused from None
            yield refusal
            return
        logger.info("server has no sessions", extra={"target": self.name, "revision": versions.MODERN})
        self._use(link)

    async def notify(self, message: RpcMessage, fields: Fields) -> None:
        """Forward a notification or a response."""
        await self._link.notify(message, fields)

    async def events(self, fields: Fields) -> AsyncGenerator[bytes, None] | None:
        """Return the unsolicited messages of the server."""
        return await self._link.events(fields)

    async def close(self) -> None:
        """End it."""
        await self._link.close()
