"""The same MCP requests answered by the engine and by Python alone: what the client and the target get, what is logged and
what is counted does not differ.
"""

from __future__ import annotations

import gc
import gzip

import pytest
from mcp_direct_rig import (
    ANOTHER_WORKERS,
    CALL,
    ENDED,
    ERROR,
    EVENT,
    JSON,
    KEY,
    MINE,
    NEWS,
    OWNER,
    RESULT,
    SSE,
    STATES,
    Case,
    Sessionless,
    Side,
    asked,
    body,
    call,
    chunked,
    raw,
    request,
    session_of,
)
from rig import Rig, Upstream, on_rig

from headgate.backend.mcp.direct_service import DirectService, never_waits
from headgate.backend.mcp.front import Front, FrontOptions
from headgate.backend.mcp.http_service import MAX_BODY, HttpService, RemoteSession
from headgate.backend.mcp.request_telemetry import RequestTelemetry
from headgate.backend.mcp.session import SessionIds, SessionLimits, Sessions, owner_of
from headgate.backend.mcp.targets.remote import Remote
from headgate.ir.endpoint import Endpoint
from headgate.ir.mcp import StreamableHttpTarget
from headgate.ir.policies import BackendPolicies, HeaderModifier
from headgate_engine.context.request import Reply, RequestContext, make_context
from headgate_engine.link.client import HttpClient
from headgate_engine.link.handler import HandlerBackend
from headgate_engine.mcp.call import DirectCall
from headgate_engine.mcp.direct import DirectBackend
from headgate_engine.mcp.settings import DirectTarget
from headgate_engine.plan.step import AsyncStep, PythonStep, Step
from headgate_engine.steps.headers import RequestHeaderStep
from headgate_engine.steps.reply import ReplyStep


class PlainSide(Side):
    """One target whose messages pass as they are."""

    def serve(self, rig: Rig, handler: HandlerBackend, policies: BackendPolicies, steps: tuple[Step, ...]) -> DirectBackend:
        client = HttpClient(rig.pool, "backend:80")
        target = StreamableHttpTarget(key="only", name="only", endpoint=Endpoint(key="e", host="backend", port=80), policies=policies)
        self.sessions = Sessions(0, SessionIds(KEY), SessionLimits(60, 10), resumable=True)
        self.session = self.sessions.adopt(MINE, RemoteSession("s-1"), OWNER)
        self.sessions.tombstone(ENDED)

        async def tell_ended(_session_id: str) -> None:
            return None

        remote = Remote(client, "backend:80", policies, steps)
        service = HttpService(target, remote, self.sessions, STATES, tell_ended, self.meter)
        self.front = Front(service, Sessionless(), "only", self.count, FrontOptions())
        plain = DirectTarget(client, target.path, steps=steps, timeout_ms=policies.request_timeout_ms or 0, meter=self.meter)
        return DirectBackend(handler, plain, DirectService(self.sessions, "only", policies, self.count))


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
    Case("a stream that ends without an answer", body(NEWS, SSE), metered=("up", "upstream stream ended without an answer")),
    Case("a stream whose last event nothing ends", body(EVENT[:-1], SSE)),
    Case("a stream that answers another request", body(EVENT.replace(b":7", b":8"), SSE)),
    Case("an id that is written in another way", body(b'data: {"jsonrpc":"2.0","id":7.0,"result":{}}\n\n', SSE)),
    Case("a stream that can be gone on with", body(b"id: 5\n" + NEWS, SSE)),
    Case("a stream that breaks off within an event", raw(chunked(NEWS, EVENT[:20], end=False), reset=True), metered=("down", "upstream stream broke off")),
    Case("a stream that ends too early", raw(chunked(NEWS, end=False))),
    Case("an error as event", body(b"data: " + ERROR + b"\n\n", SSE)),
    Case("an empty stream", body(b"", SSE)),
    Case("header policies of answers", body(EVENT, SSE), policies=EDITED),
    Case("header policies of answers, one message", policies=EDITED),
    Case("a policy of the target", steps=(RequestHeaderStep(added=[("x-key", "secret")], replaced=[("host", "other:1")], removed=["x-own"]),)),
    Case("a target with a time-out that answers in time", policies=BackendPolicies(request_timeout_ms=60_000)),
    # -- Python goes on with what the engine has begun
    Case("a policy that refuses", steps=(ReplyStep("r", Reply(429, b"later", ((b"retry-after", b"3"),), "Limit")),), python=1, metered=("unknown", None)),
    Case("404 of the target", body(b"gone", "content-type: text/plain\r\n", 404), python=1),
    Case("401 of the target", body(b"", "www-authenticate: Bearer\r\n", 401), python=1),
    Case("500 of the target", body(b"{}", JSON, 500), python=1, metered=("down", "status 500")),
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


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@on_rig()
async def test_both_ways_bring_the_same(rig: Rig, case: Case) -> None:
    expected, all_of_them = await asked(rig, case, False, PlainSide)
    found, looked_at = await asked(rig, case, True, PlainSide)
    assert all_of_them == len(case.requests)
    for name, one, other in zip(expected._fields, expected, found, strict=True):
        assert other == one, name
    assert looked_at == (len(case.requests) if case.python is None else case.python)
    assert found.busy == 0
    assert case.metered in (None, found.metered)


@on_rig()
async def test_a_target_that_cannot_be_reached(rig: Rig) -> None:
    rig.upstream_port = 1  # where nothing listens
    case = Case("unreachable")
    (expected, _) = await asked(rig, case, False, PlainSide)
    (found, looked_at) = await asked(rig, case, True, PlainSide)
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
    side = PlainSide(rig, engine, BackendPolicies(), ())
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
    side = PlainSide(rig, engine, BackendPolicies(), ())
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
    side = PlainSide(rig, True, BackendPolicies(), ())
    client = await rig.client(receive_buffer=4096)
    answer = await client.ask(request())
    assert answer.body.endswith(text + b"\n\n")
    assert answer.body.count(b"event: message\n") == (20_001 if fields is SSE else 1)
    assert side.in_python == 0
    await side.sessions.aclose()


@on_rig()
async def test_a_call_is_freed_at_its_end(rig: Rig) -> None:
    rig.script = body(ERROR)
    side = PlainSide(rig, True, BackendPolicies(), ())
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

    side = PlainSide(rig, True, BackendPolicies(), ())
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
