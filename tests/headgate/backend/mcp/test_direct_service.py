"""The same MCP requests answered by the engine and by Python alone: what the client and the target get, what is logged and
what is counted does not differ.
"""

from __future__ import annotations

import gc
import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from rig import Message, Rig, Upstream, on_rig

from headgate.backend.contract import Call
from headgate.backend.mcp.direct_service import DirectService, never_waits
from headgate.backend.mcp.front import Front, FrontOptions
from headgate.backend.mcp.http_service import MAX_BODY, HttpService, RemoteSession
from headgate.backend.mcp.request_telemetry import RequestTelemetry, logged_session_id
from headgate.backend.mcp.session import Limits, SessionIds, Sessions, owner_of
from headgate.backend.mcp.states import SessionStates
from headgate.backend.mcp.targets.remote import Remote
from headgate.crypto.sealed import Sealer
from headgate.ir.endpoint import Endpoint
from headgate.ir.mcp import StreamableHttpTarget
from headgate.ir.policies import BackendPolicies, HeaderModifier
from headgate_engine.context.request import Reply, RequestContext, make_context
from headgate_engine.link.client import HttpClient
from headgate_engine.link.handler import HandlerBackend
from headgate_engine.mcp.direct import DirectBackend, DirectCall, DirectTarget
from headgate_engine.plan.plans import BackendPlan, RoutePlan
from headgate_engine.plan.step import AsyncStep, PythonStep, Step
from headgate_engine.route.table import RouteRule, RouteTable
from headgate_engine.steps.headers import RequestHeaderStep
from headgate_engine.steps.reply import ReplyStep

KEY = bytes(range(32))
STATES = SessionStates(Sealer(KEY, "mcp links only"))
CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ping","arguments":{"a":1}}}'
RESULT = b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"pong"}]}}'
ERROR = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no such tool"}}'
EVENT = b"data: " + RESULT + b"\n\n"
NEWS = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n\n'
JSON, SSE = "content-type: application/json\r\n", "content-type: text/event-stream\r\n"
OWNER = owner_of(make_context())


def session_of(owner: str = OWNER, target: str = "only", name: str | None = "s-1") -> str:
    return STATES.seal([(target, name)], owner)


MINE, ANOTHER_WORKERS, ENDED = session_of(), session_of(), session_of()
KNOWN = {MINE, ANOTHER_WORKERS, "s-1"}
FIELDS = {"host": "a.test", "accept": "application/json, text/event-stream", "content-type": "application/json",
          "mcp-session-id": MINE, "mcp-protocol-version": "2025-06-18", "x-own": "1", "Authorization": "Bearer t",
          "cookie": "c=1", "X-Api-Key": "k", "accept-encoding": "gzip", "user-agent": "test"}  # fmt: skip


class Sessionless:
    unread = True

    async def post(self, call: Call, message: Any) -> None:
        call.reply(404, (), b"nothing without sessions")

    async def revisions(self) -> list[str]:
        return ["2025-06-18"]


class Side:
    """One of the two ways, and what it has seen."""

    def __init__(self, rig: Rig, engine: bool, policies: BackendPolicies, steps: tuple[Step, ...]) -> None:
        self.counted: list[tuple[object, ...]] = []
        self.contexts: list[RequestContext] = []
        self.in_python = 0
        client = HttpClient(rig.pool, "backend:80")
        target = StreamableHttpTarget(key="only", name="only", endpoint=Endpoint(key="e", host="backend", port=80), policies=policies)
        self.sessions = Sessions(0, SessionIds(KEY), Limits(60, 10), resumable=True)
        self.session = self.sessions.adopt(MINE, RemoteSession("s-1"), OWNER)
        self.sessions.tombstone(ENDED)

        async def tell_ended(_session_id: str) -> None:
            return None

        remote = Remote(client, "backend:80", policies, steps)
        service = HttpService(target, remote, self.sessions, STATES, tell_ended)
        self.front = Front(service, Sessionless(), "only", self.count, FrontOptions())
        handler: Any = HandlerBackend(rig.worker, "only", self.handle)
        if engine:
            plain = DirectTarget(client, target.path, steps=steps, timeout_ms=policies.request_timeout_ms or 0)
            handler = DirectBackend(handler, plain, DirectService(self.sessions, "only", policies, self.count))
        rig.backend = BackendPlan("only", "mcp", handler)
        rig.route = RoutePlan("r", "default", "", (rig.backend,), (1,))
        rig.listener.routes = RouteTable([RouteRule(target=rig.route)])
        rig.listener.response_steps = (PythonStep("watch", self.watch),)

    async def handle(self, call: Any) -> None:
        self.in_python += 1
        await self.front.handle(call)

    def watch(self, context: RequestContext) -> None:
        self.contexts.append(context)
        shown = (context.dynamic or {}).get("mcp")
        if shown is not None:
            members = [key for key in ("methodName", "sessionId", "tool", "prompt") if key in shown]
            context.add_response_header("x-mcp", json.dumps([[key, shown[key]] for key in members]))

    def count(self, call: Call, telemetry: RequestTelemetry) -> None:
        assert call.context is not None
        found = (telemetry.method, telemetry.kind, telemetry.server, telemetry.name, telemetry.failed, call.route_labels())
        self.counted.append((*found, bool(call.place)))

    def logged(self) -> list[Any]:
        known = {logged_session_id(one) for one in KNOWN}
        return [
            [(key, "new" if key == "mcp.session.id" and value not in known else value) for key, value in context.log_field_items]
            for context in self.contexts
        ]


class Seen(NamedTuple):
    """What one way brings."""

    answers: list[Any]
    requests: list[Any]
    counted: list[Any]
    logged: list[Any]
    busy: int


Script = Callable[[Upstream], Awaitable[None]]


def body(data: bytes, fields: str = JSON, status: int = 200) -> Script:
    """A target that answers everything with this."""

    async def script(up: Upstream) -> None:
        while True:
            await up.request()
            await up.reply(data, status, fields)

    return script


def raw(*pieces: bytes, reset: bool = False, silent: bool = False) -> Script:
    """A target that sends these bytes and ends the connection, breaks it off, or says no more."""

    async def script(up: Upstream) -> None:
        await up.request()
        for piece in pieces:
            await up.send(piece)
        if silent:
            await up.closed()
        elif reset:
            up.reset()

    return script


def chunked(*pieces: bytes, fields: str = SSE, end: bool = True) -> bytes:
    head = f"HTTP/1.1 200 X\r\n{fields}transfer-encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + (b"0\r\n\r\n" if end else b"")


def request(data: bytes = CALL, path: str = "/mcp", method: str = "POST", **fields: str | None) -> bytes:
    """A client's request; a field that is None is left out."""
    found = {**FIELDS, **{name.replace("_", "-"): value for name, value in fields.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in found.items() if value is not None)
    return f"{method} {path} HTTP/1.1\r\n{lines}content-length: {len(data)}\r\n\r\n".encode() + data


class Case(NamedTuple):
    """`python`: how many of the requests Python has to look at; None where that is all of them."""

    name: str
    script: Script = body(RESULT)
    requests: tuple[bytes, ...] = (request(),)
    python: int | None = 0
    policies: BackendPolicies = BackendPolicies()
    steps: tuple[Step, ...] = ()


def call(method: str, **params: object) -> bytes:
    return request(json.dumps({"jsonrpc": "2.0", "id": "a\"1", "method": method, "params": params}).encode())


SHORT = BackendPolicies(request_timeout_ms=50)
EDITED = BackendPolicies(response_headers=HeaderModifier(add=(("x-a", "1"),), set=(("cache-control", "no-store"),), remove=("x-accel-buffering",)))
CASES = [
    Case("one JSON message"),
    Case("two calls on one connection", requests=(request(), request())),
    Case("a type with a parameter", body(RESULT, "Content-Type: Application/JSON; charset=utf-8\r\n")),
    Case("the answer names its session", body(RESULT, JSON + "mcp-session-id: s-1\r\n")),
    Case("an error of the tool", body(ERROR)),
    Case("a status that is not 200", body(RESULT, status=201)),
    Case("line breaks in the answer", body(b'{"jsonrpc":"2.0",\r\n"id":7,\n"result":{}}')),
    Case("no version is named", requests=(request(mcp_protocol_version=None),)),
    Case("a type in capitals, and more types", requests=(request(content_type="APPLICATION/JSON;x=1", accept="text/event-stream;q=1, */*, application/json"),)),
    Case("other methods", requests=(call("tools/list"), call("prompts/get", name="p"), call("resources/read", uri="a://b"), call("ping"), call("x/y"))),
    Case("a stream of one event", body(EVENT, SSE)),
    Case("a stream in chunks", raw(chunked(NEWS, b": ping\n\n" + EVENT[:9], EVENT[9:]))),
    Case("a stream that ends without an answer", body(NEWS, SSE)),
    Case("a stream whose last event nothing ends", body(EVENT[:-1], SSE)),
    Case("a stream that answers another request", body(EVENT.replace(b":7", b":8"), SSE)),
    Case("an id that is written in another way", body(b'data: {"jsonrpc":"2.0","id":7.0,"result":{}}\n\n', SSE)),
    Case("a stream that can be gone on with", body(b"id: 5\n" + NEWS, SSE)),
    Case("a stream that breaks off within an event", raw(chunked(NEWS, EVENT[:20], end=False), reset=True)),
    Case("a stream that ends too early", raw(chunked(NEWS, end=False))),
    Case("an error as event", body(b"data: " + ERROR + b"\n\n", SSE)),
    Case("an empty stream", body(b"", SSE)),
    Case("header policies of answers", body(EVENT, SSE), policies=EDITED),
    Case("header policies of answers, one message", policies=EDITED),
    Case("a policy of the target", steps=(RequestHeaderStep(added=[("x-key", "secret")], replaced=[("host", "other:1")], removed=["x-own"]),)),
    Case("a target with a time-out that answers in time", policies=BackendPolicies(request_timeout_ms=60_000)),
    # -- Python goes on with what the engine has begun
    Case("a policy that refuses", steps=(ReplyStep("r", Reply(429, b"later", ((b"retry-after", b"3"),), "Limit")),), python=1),
    Case("404 of the target", body(b"gone", "content-type: text/plain\r\n", 404), python=1),
    Case("401 of the target", body(b"", "www-authenticate: Bearer\r\n", 401), python=1),
    Case("500 of the target", body(b"{}", JSON, 500), python=1),
    Case("202 of the target", body(b"", "", 202), python=1),
    Case("another type", body(b"<p>", "content-type: text/html\r\n"), python=1),
    Case("no type", body(RESULT, ""), python=1),
    Case("an empty answer", body(b""), python=1),
    Case("an answer in a coding", body(gzip.compress(RESULT, mtime=0), JSON + "content-encoding: gzip\r\n"), python=1),
    Case("a coding that nobody knows", body(b"x", JSON + "content-encoding: y\r\n"), python=1),
    Case("a stream in a coding", body(gzip.compress(EVENT, mtime=0), SSE + "content-encoding: gzip\r\n"), python=1),
    Case("the connection ends before an answer", raw(), python=1),
    Case("the connection breaks in the answer", raw(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"), python=1),
    Case("no HTTP", raw(b"nonsense\r\n\r\n"), python=1),
    Case("a target that says nothing", raw(silent=True), policies=SHORT, python=1),
    Case("a target that says too little", raw(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{", silent=True), policies=SHORT, python=1),
    Case("an answer that is too long", body(b" " * (MAX_BODY + 1)), python=1),
    # -- Python from the beginning
    Case("no JSON", requests=(request(b"{"),), python=None),
    Case("a batch", requests=(request(b"[" + CALL + b"]"),), python=None),
    Case("a member that stands twice", requests=(request(CALL[:-1] + b',"id":8}'),), python=None),
    Case("a notification", body(b"", "", 202), requests=(request(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'),), python=None),
    Case("no body", requests=(request(b""),), python=None),
    Case("no session", requests=(request(mcp_session_id=None),), python=None),
    Case("a session that is none", requests=(request(mcp_session_id="nonsense"),), python=None),
    Case("a session that was ended", requests=(request(mcp_session_id=ENDED),), python=None),
    Case("somebody else's session", requests=(request(mcp_session_id=session_of("bob")),), python=None),
    Case("a session of another worker", requests=(request(mcp_session_id=ANOTHER_WORKERS),) * 2, python=1),
    Case("a type that is not taken", requests=(request(accept="application/json"),), python=None),
    Case("another type of body", requests=(request(content_type="text/plain"),), python=None),
    Case("a version that nobody knows", requests=(request(mcp_protocol_version="1999-01-01"),), python=None),
    Case("the version without sessions", requests=(request(mcp_protocol_version="2026-07-28"),), python=None),
    Case("a trace", requests=(request(traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01"),), python=None),
    Case("a field that contradicts the body", requests=(request(mcp_method="tools/list"),), python=None),
    Case("a field that agrees with the body", requests=(request(mcp_name="ping"),), python=None),
    Case("a name that no field can hold", requests=(call("tools/call", name="pïng"),), python=None),
    Case("fields of workers", requests=(request(x_gw_relay_backend="00"),), python=None),
    Case("another method of HTTP", requests=(request(method="PUT"),), python=None),
    Case("initialize within a session", requests=(call("initialize", protocolVersion="2025-06-18"),), python=None),
]  # fmt: skip


def plain(message: Message) -> Any:
    """A message without what is never the same: the date, and ids of sessions that begin with it."""
    fields = [pair for pair in message.fields if pair[0].lower() != "date"]
    fields = [(name, "new" if name == "mcp-session-id" and value not in KNOWN else value) for name, value in fields]
    return message.start, fields, message.body, message.trailers


async def asked(rig: Rig, case: Case, engine: bool) -> tuple[Seen, int]:
    rig.script = case.script
    rig.seen.clear()
    side = Side(rig, engine, case.policies, case.steps)
    client = await rig.client()
    answers = [plain(await client.ask(data)) for data in case.requests]
    client.close()
    await rig.wait(lambda: not [task for task in rig.tasks if "handler" in task.get_name()], "handlers over")
    await rig.wait(lambda: len(side.contexts) == len(answers), "all are answered")
    await side.sessions.aclose()
    found = Seen(answers, [plain(one) for one in rig.seen], side.counted, side.logged(), side.session.busy)
    return found, side.in_python


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@on_rig()
async def test_both_ways_bring_the_same(rig: Rig, case: Case) -> None:
    expected, all_of_them = await asked(rig, case, False)
    found, looked_at = await asked(rig, case, True)
    assert all_of_them == len(case.requests)
    for name, one, other in zip(Seen._fields, expected, found, strict=True):
        assert other == one, name
    assert looked_at == (len(case.requests) if case.python is None else case.python)
    assert found.busy == 0


@on_rig()
async def test_a_target_that_cannot_be_reached(rig: Rig) -> None:
    rig.upstream_port = 1  # where nothing listens
    case = Case("unreachable")
    (expected, _), (found, looked_at) = await asked(rig, case, False), await asked(rig, case, True)
    assert found == expected
    assert (looked_at, found.answers[0][0]) == (1, "HTTP/1.1 503 Service Unavailable")


@pytest.mark.parametrize("begun", [False, True], ids=["before the head", "within a stream"])
@pytest.mark.parametrize("engine", [False, True], ids=["python", "engine"])
@on_rig()
async def test_a_client_that_goes_ends_the_call(rig: Rig, engine: bool, begun: bool) -> None:
    closed: list[bool] = []

    async def script(up: Upstream) -> None:
        await up.request()
        if begun:
            await up.send(chunked(NEWS, end=False))
        await up.closed()
        closed.append(True)

    rig.script = script
    side = Side(rig, engine, BackendPolicies(), ())
    client = await rig.client()
    await client.send(request())
    await rig.wait(lambda: rig.seen, "the target has the call")
    if begun:
        await client.intake.until(b"notifications/message")
    client.close()
    await rig.wait(lambda: closed, "the call is given up")
    await rig.wait(lambda: side.session.busy == 0, "nobody uses the session")
    assert [(one[3], one[4]) for one in side.counted] == [("ping", True)]
    assert side.in_python == (not engine)
    await side.sessions.aclose()


@pytest.mark.parametrize("engine", [False, True], ids=["python", "engine"])
@on_rig()
async def test_a_route_that_waits_no_longer(rig: Rig, engine: bool) -> None:
    rig.script = raw(silent=True)
    side = Side(rig, engine, BackendPolicies(), ())
    rig.route.request_timeout_ns = 50_000_000
    answer = await rig.ask(request())
    assert answer.status == 504
    await rig.wait(lambda: side.session.busy == 0, "nobody uses the session")
    assert [(one[3], one[4]) for one in side.counted] == [("ping", True)]
    assert [key for key, _ in side.contexts[0].log_field_items][:4] == [
        "mcp.method.name", "mcp.session.id", "mcp.resource.type", "mcp.target"]  # fmt: skip
    await side.sessions.aclose()


@pytest.mark.parametrize("fields", [SSE, JSON], ids=["stream", "one message"])
@on_rig()
async def test_a_slow_client_gets_all_of_a_long_answer(rig: Rig, fields: str) -> None:
    text = b'{"jsonrpc":"2.0","id":7,"result":{"t":"' + b"x" * 3_000_000 + b'"}}'
    events = b"".join(NEWS for _ in range(20_000)) + b"data: " + text + b"\n\n" if fields is SSE else text
    rig.script = body(events, fields)
    side = Side(rig, True, BackendPolicies(), ())
    client = await rig.client(receive_buffer=4096)
    answer = await client.ask(request())
    assert answer.body.endswith(text + b"\n\n")
    assert answer.body.count(b"event: message\n") == (20_001 if fields is SSE else 1)
    assert side.in_python == 0
    await side.sessions.aclose()


@on_rig()
async def test_a_call_is_freed_at_its_end(rig: Rig) -> None:
    rig.script = body(ERROR)
    side = Side(rig, True, BackendPolicies(), ())
    rig.listener.response_steps = ()
    client = await rig.client()

    def alive() -> int:
        return sum(type(one) in (DirectCall, RequestTelemetry, RequestContext) for one in gc.get_objects())

    await client.ask(request())
    gc.collect()
    gc.disable()
    try:
        before = alive()
        for _ in range(5):
            assert (await client.ask(request())).status == 200
        assert alive() == before
    finally:
        gc.enable()
    assert side.in_python == 0
    await side.sessions.aclose()


@on_rig()
async def test_fields_with_the_credential_stay_behind_and_the_owner_counts(rig: Rig) -> None:
    def known(context: RequestContext) -> None:
        context.api_key_text = b"k-123"

    side = Side(rig, True, BackendPolicies(), ())
    rig.route.request_steps = (PythonStep("key", known),)
    rig.script = body(RESULT)
    refused = await rig.ask(request(x_mine="1"))
    assert (refused.status, side.in_python) == (404, 1), "the session is nobody's, and this is somebody"
    owner = owner_of(make_context())
    side.session.owner = owner_of(known_context())
    answer = await rig.ask(request(x_token="Key k-123", x_mine="1"))
    assert (answer.status, side.in_python, owner) == (200, 1, "")
    assert (rig.seen[-1].get("x-token"), rig.seen[-1].get("x-mine")) == (None, "1")
    await side.sessions.aclose()


def known_context() -> RequestContext:
    context = make_context()
    context.api_key_text = b"k-123"
    return context


def test_steps_that_may_wait_are_left_to_python() -> None:
    def nothing(_context: RequestContext) -> None:
        return None

    assert never_waits([RequestHeaderStep(), ReplyStep("r", Reply(200))])
    assert not never_waits([RequestHeaderStep(), AsyncStep("a", nothing)])
    assert not never_waits([PythonStep("p", nothing)])
