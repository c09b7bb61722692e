"""The endpoints below `/api/logs`: the request log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from headgate.admin.answers import NO_STORE, as_json
from headgate.admin.running import RunningGateway
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute, AdminStream

if TYPE_CHECKING:
    from headgate.ir.request_log import RequestLogStore
    from headgate.telemetry.requests.search import Tail

MISSING: Final = "request log database is not configured"
POLL_SECONDS: Final = 1.0
HEARTBEAT_SECONDS: Final = 15.0
MAX_TAILS: Final = 16
# Maximum number of concurrent queries; further ones wait. They have threads of their own: other work of the supervisor
# does not wait for a database that is slow.
MAX_QUESTIONS: Final = 4
PREFIX: Final = "/api/logs"


class _RequestsRefused(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__()
        self.answer = as_json(status, reason)


Found = TypeVar("Found")


class QueryThreads:
    """The threads that queries wait in, made for the first one."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, call: Callable[..., Found], *values: Any) -> Found:
        """Return what a call returns in a thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(MAX_QUESTIONS, "request log reader")
        return await asyncio.get_running_loop().run_in_executor(self._pool, call, *values)


class _OpenTails:
    """Counts the open tails."""

    def __init__(self, threads: QueryThreads) -> None:
        self._threads = threads
        self._open = 0

    def stream(self, tail: Tail) -> AdminStream:
        """Return the stream of a tail; raises _RequestsRefused if too many are open."""
        if self._open >= MAX_TAILS:
            raise _RequestsRefused(503, f"{MAX_TAILS} tails are open")
        fields = (*NO_STORE, ("x-content-type-options", "nosniff"))
        return AdminStream(self._counted(tail), "text/event-stream", fields, b": \n\n")

    async def _counted(self, tail: Tail) -> AsyncGenerator[bytes, None]:
        self._open += 1
        try:
            async for piece in events(tail, self._threads):
                yield piece
        finally:
            self._open -= 1


def request_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the rows of the admin server's table that are below `/api/logs`."""
    threads = QueryThreads()
    tails = _OpenTails(threads)

    def store() -> RequestLogStore:
        found = running.gateway.process.request_log
        if found is None:
            raise _RequestsRefused(500, MISSING)
        return found

    def row(name: str, handle: Callable[[AdminRequest], Any]) -> AdminRoute:
        async def handler(request: AdminRequest) -> AdminResponse | AdminStream:
            # Imported late: a gateway without a request log needs none of it.
            from headgate.telemetry.requests.question import BadQuestion
            from headgate.telemetry.requests.stores import LogFailure

            try:
                found: AdminResponse | AdminStream = await handle(request)
            except _RequestsRefused as refused:
                return refused.answer
            except BadQuestion as error:
                return as_json(400, str(error))
            except LogFailure as error:
                return as_json(500, unreadable(error))
            return found

        return AdminRoute("POST", f"{PREFIX}/{name}", handler, own=True)

    async def search(request: AdminRequest) -> AdminResponse:
        from headgate.telemetry.requests import question, search

        asked = question.document(request.body, search.SEARCH_KEYS)
        return as_json(200, await threads.run(search.search, store(), asked))

    async def get(request: AdminRequest) -> AdminResponse:
        from headgate.telemetry.requests import question, search

        found = await threads.run(search.get, store(), question.document(request.body, ("id",)))
        return as_json(404, "there is no such record") if found is None else as_json(200, {"log": found})

    async def summary(request: AdminRequest) -> AdminResponse:
        from headgate.telemetry.requests import analytics, question

        asked = question.document(request.body, analytics.KEYS)
        return as_json(200, await threads.run(analytics.summary, store(), asked))

    async def tail(request: AdminRequest) -> AdminStream:
        from headgate.telemetry.requests import question, search

        return tails.stream(search.Tail(store(), question.document(request.body, search.TAIL_KEYS)))

    return (row("search", search), row("get", get), row("tail", tail), row("analytics/summary", summary))


def unreadable(error: Exception) -> str:
    """Return the database error as a message for the operator."""
    from headgate.telemetry.requests.stores import INTERRUPTED

    if str(error) == INTERRUPTED:
        return "the request log took too long: ask for a shorter time range"
    return f"request log database cannot be read: {error}"


async def events(tail: Tail, threads: QueryThreads) -> AsyncGenerator[bytes, None]:
    """Yield the events of a tail: `log`, `heartbeat` when there are no new records, and `error` as the last event."""
    loop = asyncio.get_running_loop()
    last = loop.time()
    from headgate.telemetry.requests.stores import LogFailure

    try:
        await threads.run(tail.begin)
        yield b": ready\n\n"
        while True:
            for cursor, entry in await threads.run(tail.more):
                yield event("log", {"entry": entry, "cursor": cursor})
                last = loop.time()
            if loop.time() - last >= HEARTBEAT_SECONDS:
                yield event("heartbeat", {})
                last = loop.time()
            await asyncio.sleep(POLL_SECONDS)
    except LogFailure as error:
        yield event("error", {"message": unreadable(error)})


def event(kind: str, data: Any) -> bytes:
    """Return one server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
