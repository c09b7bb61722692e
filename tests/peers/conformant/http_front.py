"""StreamableHTTP of all revisions: sessions with streams that can be resumed, and requests without a session."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import re
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.peers.conformant.behaviour import completed, respond
from tests.peers.conformant.exchange import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MODERN,
    NAMESPACE,
    STATUSES,
    UNSUPPORTED_VERSION,
    VERSIONS,
    Exchange,
    InputRequired,
    Json,
    Peer,
    RpcError,
)
from tests.peers.conformant.tasks import TASKS

from headgate.sample.web import SampleRequest, SampleResponse

LOCAL = re.compile(r"(?:https?://)?(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?")
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId",
         "tasks/update": "taskId", "tasks/cancel": "taskId"}  # fmt: skip
REMOVED = ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")
EVENT_IDS_SINCE = "2025-11-25"
Lines = asyncio.Queue[Json | None]


class Stream:
    """The events of one POST of a session, kept until the session ends: a client may come back for them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.events: list[Json | None] = []
        self.attached = True
        self.news = asyncio.Event()

    def put(self, message: Json | None) -> None:
        self.events.append(message)
        self.news.set()

    def hang_up(self) -> None:
        self.attached = False
        self.news.set()

    async def read(self, start: int, numbered: bool, resumed: bool = False) -> AsyncIterator[bytes]:
        """Yield events from one on until the last; those who did not resume are left where the server hangs up."""
        at = start
        while resumed or self.attached:
            self.news.clear()
            while at < len(self.events):
                message = self.events[at]
                if message is None:
                    return
                at += 1
                yield event(message, f"{self.number}-{at}" if numbered else None)
            if not resumed and not self.attached:
                return
            await self.news.wait()


class Session(Peer):
    """One client's session."""

    def __init__(self, version: str) -> None:
        super().__init__()
        self.version = version
        self.streams: dict[int, Stream] = {}
        self.unasked: Lines = asyncio.Queue()
        self.send = self.unasked.put_nowait


class HttpFront:
    """`local_only`: only requests from this machine's own pages. `old` and `new`: which revisions are spoken. `aside`:
    sessions are asked on their event stream. `GET /sessions` tells how many there are.
    """

    def __init__(self, old: bool, new: bool, local_only: bool, aside: bool = False) -> None:
        self._old, self._new, self._local_only, self._aside = old, new, local_only, aside
        self._versions = [one for one in VERSIONS if (new if one == MODERN else old)]
        self._sessions: dict[str, Session] = {}
        self._listeners: dict[object, tuple[Lines, Json, Any]] = {}
        self._numbers = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle(self, request: SampleRequest) -> SampleResponse:
        """Answer one request."""
        if self._local_only and not all(
            LOCAL.fullmatch(value) for name, value in request.headers if name in ("host", "origin")
        ):
            return SampleResponse(status=403)
        version = request.header("mcp-protocol-version")
        if request.path == "/sessions":
            return SampleResponse(status=200, body=encoded({"sessions": len(self._sessions)}))
        if request.method == "POST":
            try:
                message = json.loads(request.body)
            except ValueError:
                return SampleResponse(status=400, body=b"not JSON")
            try:
                # A server without sessions looks into every request, one with sessions knows no other revision.
                if self._new and ((version is not None and version not in VERSIONS[:-1]) or not self._old):
                    return await self._modern(request, message)
                return await self._legacy(request, message)
            except RpcError as error:
                return SampleResponse(status=STATUSES.get(error.code, 200), body=encoded(failure(message.get("id"), error)))
        session = self._sessions.get(request.header("mcp-session-id") or "")
        if not self._old or version == MODERN:
            return SampleResponse(status=405)
        if session is None:
            return SampleResponse(status=404 if request.header("mcp-session-id") else 400)
        if request.method == "DELETE":
            del self._sessions[request.header("mcp-session-id") or ""]
            return SampleResponse(status=200)
        return self._get(request, session)

    # -- with sessions -------------------------------------------------------------------------------------------------
    def _get(self, request: SampleRequest, session: Session) -> SampleResponse:
        last = request.header("last-event-id")
        if last is None:
            return streamed(unasked(session.unasked))
        number, _, at = last.partition("-")
        stream = session.streams.get(int(number))
        if stream is None:
            return SampleResponse(status=404)
        return streamed(stream.read(int(at), True, resumed=True))

    async def _legacy(self, request: SampleRequest, message: Json) -> SampleResponse:
        key = request.header("mcp-session-id")
        version = request.header("mcp-protocol-version")
        if version is not None and version not in VERSIONS[:-1]:
            raise RpcError(UNSUPPORTED_VERSION, "Unsupported version", {"supported": self._versions, "requested": version})
        headers = []
        if message.get("method") == "initialize":
            key = secrets.token_urlsafe(16)
            self._sessions[key] = Session(str((message.get("params") or {}).get("protocolVersion")))
            headers.append(("mcp-session-id", key))
        if key is None or key not in self._sessions:
            return SampleResponse(status=400 if key is None else 404)
        session = self._sessions[key]
        if "method" not in message:
            waiting = session.asks.pop(str(message.get("id")), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
            return SampleResponse(status=202)
        if "id" not in message:
            return SampleResponse(status=202)
        self._numbers += 1
        stream = session.streams[self._numbers] = Stream(self._numbers)
        numbered = session.version >= EVENT_IDS_SINCE
        exchange = Exchange(session, message.get("params") or {}, False, stream.put, stream.hang_up)
        send = session.send if self._aside else stream.put
        exchange.ask_client = lambda method, params: ask(session, send, method, params)
        self._spawn(self._serve(exchange, message, stream.put))
        return SampleResponse(content_type="text/event-stream", headers=headers, stream=primed(stream, numbered))

    # -- without sessions ----------------------------------------------------------------------------------------------
    async def _modern(self, request: SampleRequest, message: Json) -> SampleResponse:
        if "id" not in message:
            return SampleResponse(status=202)
        check(request, message, self._versions)
        params = message.get("params") or {}
        lines: Lines = asyncio.Queue()
        if message["method"] == "subscriptions/listen":
            return streamed(self._listen(message, params))
        exchange = Exchange(Peer(), params, True, lines.put_nowait)
        task = self._spawn(self._serve(exchange, message, lines.put_nowait))
        first = await lines.get()
        if first is not None and "method" not in first:
            code = (first.get("error") or {}).get("code", 0)
            return SampleResponse(status=STATUSES.get(code, 200), body=encoded(first))
        return streamed(rest(first, lines, task))

    async def _listen(self, message: Json, params: Json) -> AsyncIterator[bytes]:
        wanted = {key: value for key, value in (params.get("notifications") or {}).items() if value}
        agreed = agreed_of(wanted)
        lines: Lines = asyncio.Queue()
        meta = {NAMESPACE + "subscriptionId": message["id"]}
        self._listeners[lines] = (lines, agreed, meta)
        note = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": agreed, "_meta": meta}}  # fmt: skip
        try:
            yield event(note)
            async for piece in unasked(lines):
                yield piece
        finally:
            del self._listeners[lines]

    # -- both ----------------------------------------------------------------------------------------------------------
    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _serve(self, exchange: Exchange, message: Json, put: Any) -> None:
        put(await answer(exchange, message, self.changed, self._versions))
        put(None)

    def changed(self, kind: str) -> None:
        """Tell everybody that a list, the resource `test://...`, or the task `task:...` has changed."""
        if kind.startswith("task:"):
            for lines, agreed, meta in self._listeners.values():
                if kind[5:] in agreed.get("taskIds", ()):
                    lines.put_nowait(task_note(kind[5:], meta))
            return
        method = "notifications/resources/updated" if "://" in kind else f"notifications/{kind}/list_changed"
        about = {"uri": kind} if "://" in kind else {}
        for session in self._sessions.values():
            if not about or kind in session.subscribed:
                session.send({"jsonrpc": "2.0", "method": method, **({"params": about} if about else {})})
        for lines, agreed, meta in self._listeners.values():
            if agreed.get(f"{kind}ListChanged") or kind in agreed.get("resourceSubscriptions", ()):
                lines.put_nowait({"jsonrpc": "2.0", "method": method, "params": {**about, "_meta": meta}})


async def answer(exchange: Exchange, message: Json, changed: Any, spoken: list[str]) -> Json:
    """Return the response to a request."""
    method = str(message.get("method"))
    try:
        result = await respond(exchange, method, changed)
    except RpcError as error:
        return failure(message["id"], error)
    except InputRequired as wanted:
        result = {"resultType": "input_required", "inputRequests": wanted.requests}
        if wanted.state is not None:
            result["requestState"] = wanted.state
    if exchange.modern:
        result = completed(method, result)
        if method == "server/discover":
            result["supportedVersions"] = spoken
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


async def ask(session: Session, send: Callable[[Json], None], method: str, params: Json) -> Json:
    """Send a request to the client; return its result."""
    key = secrets.token_hex(8)
    waiting = session.asks[key] = asyncio.get_running_loop().create_future()
    send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
    found = await waiting
    if "error" in found:
        raise RpcError(found["error"]["code"], found["error"]["message"])
    return dict(found["result"])


def check(request: SampleRequest, message: Json, spoken: list[str]) -> None:
    """Raise RpcError for fields and `_meta` that revision 2026-07-28 does not allow."""
    method = str(message.get("method"))
    params = message.get("params") or {}
    meta = params.get("_meta") or {}
    version, own = request.header("mcp-protocol-version"), meta.get(NAMESPACE + "protocolVersion")
    if version is not None and version not in spoken:
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported version", {"supported": spoken, "requested": version})
    if method in REMOVED:
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")
    if own is None or not isinstance(meta.get(NAMESPACE + "clientCapabilities"), dict):
        raise RpcError(INVALID_PARAMS, "_meta is incomplete")
    if own != version:
        raise RpcError(HEADER_MISMATCH, "mcp-protocol-version does not match the body")
    expected = {"mcp-method": method}
    if method in NAMED:
        expected["mcp-name"] = params.get(NAMED[method])
    if params.get("name") == "test_x_mcp_header" and method == "tools/call":
        region = (params.get("arguments") or {}).get("region")
        if region is not None:
            expected["mcp-param-region"] = region
    for name, value in expected.items():
        if decoded(request.header(name)) != value:
            raise RpcError(HEADER_MISMATCH, f"{name} does not match the body")


def agreed_of(wanted: Json) -> Json:
    """Return what of a filter there is to hear."""
    known = ("toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions")
    agreed = {key: wanted[key] for key in known if key in wanted}
    ids = [one for one in wanted.get("taskIds", ()) if one in TASKS]
    return {**agreed, "taskIds": ids} if ids else agreed


def task_note(key: str, meta: Json) -> Json:
    """Return what is told of a task."""
    return {"jsonrpc": "2.0", "method": "notifications/tasks", "params": {**TASKS[key].detailed(), "_meta": meta}}


def decoded(field: str | None) -> str | None:
    """Return what a field stands for, None when it is broken."""
    if field is None or not (field.startswith("=?base64?") and field.endswith("?=")):
        return None if field is None else field.strip()
    with contextlib.suppress(binascii.Error, UnicodeDecodeError):
        return base64.b64decode(field[9:-2], validate=True).decode()
    return None


def failure(key: object, error: RpcError) -> Json:
    """Return an error response."""
    more = {} if error.data is None else {"data": error.data}
    return {"jsonrpc": "2.0", "id": key, "error": {"code": error.code, "message": str(error), **more}}


def encoded(message: Json) -> bytes:
    """Return a message as JSON."""
    return json.dumps(message).encode()


def event(message: Json, key: str | None = None) -> bytes:
    """Return a message as an event."""
    return (b"" if key is None else f"id: {key}\n".encode()) + b"event: message\ndata: " + encoded(message) + b"\n\n"


def streamed(pieces: AsyncIterator[bytes]) -> SampleResponse:
    """Return an answer that is an event stream."""
    return SampleResponse(content_type="text/event-stream", stream=pieces)


async def primed(stream: Stream, numbered: bool) -> AsyncIterator[bytes]:
    """Yield an event with an id before anything else, so that the client can come back."""
    if numbered:
        yield f"id: {stream.number}-0\nretry: 200\ndata: \n\n".encode()
    async for piece in stream.read(0, numbered):
        yield piece


async def rest(first: Json | None, lines: Lines, task: asyncio.Task[None]) -> AsyncIterator[bytes]:
    """Yield what belongs to a request; when nobody reads it any more, the request is cancelled."""
    try:
        while first is not None:
            yield event(first)
            first = await lines.get()
    finally:
        task.cancel()


async def unasked(lines: Lines) -> AsyncIterator[bytes]:
    """Yield messages for ever, and comments: writing is how one learns that nobody reads any more."""
    while True:
        try:
            async with asyncio.timeout(1):
                message = await lines.get()
        except TimeoutError:
            yield b": waiting\n\n"
            continue
        if message is not None:
            yield event(message)


