"""MCP requests served by the engine and by Python alone, one after the other, so that tests compare what each way brings."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from rig import Message, Rig, Upstream

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.front import Front
from headgate.backend.mcp.request_telemetry import RequestTelemetry, logged_session_id
from headgate.backend.mcp.session import McpSession, Sessions, owner_of
from headgate.backend.mcp.states import SessionStates
from headgate.crypto.sealed import Sealer
from headgate.ir.policies import BackendPolicies
from headgate_engine.context.request import RequestContext, make_context
from headgate_engine.link.backend import Backend
from headgate_engine.link.handler import HandlerBackend
from headgate_engine.mcp.meter import McpTargetMeter
from headgate_engine.plan.plans import BackendPlan, RoutePlan
from headgate_engine.plan.step import PythonStep, Step
from headgate_engine.route.table import RouteRule, RouteTable
from headgate_engine.shared.segment import Segment

KEY = bytes(range(32))
STATES = SessionStates(Sealer(KEY, "mcp links only"))
CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ping","arguments":{"a":1}}}'
EVENT_ID = re.compile(rb"id: 0w[0-9a-f]+")
RESULT = b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"pong"}]}}'
ERROR = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no such tool"}}'
EVENT = b"data: " + RESULT + b"\n\n"
NEWS = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n\n'
JSON, SSE = "content-type: application/json\r\n", "content-type: text/event-stream\r\n"
OWNER = owner_of(make_context())
SEGMENT = Segment.create()


def session_of(owner: str = OWNER, target: str = "only", name: str | None = "s-1") -> str:
    return STATES.seal([(target, name)], owner)


MINE, ANOTHER_WORKERS, ENDED = session_of(), session_of(), session_of()
KNOWN = {MINE, ANOTHER_WORKERS, "s-1"}
FIELDS = {"host": "a.test", "accept": "application/json, text/event-stream", "content-type": "application/json",
          "mcp-session-id": MINE, "mcp-protocol-version": "2025-06-18", "x-own": "1", "Authorization": "Bearer t",
          "cookie": "c=1", "X-Api-Key": "k", "accept-encoding": "gzip", "user-agent": "test"}  # fmt: skip




class Sessionless:
    unread = True

    async def post(self, call: BackendCall, message: Any) -> None:
        call.reply(404, (), b"nothing without sessions")

    async def revisions(self) -> list[str]:
        return ["2025-06-18"]


class Side:
    """One of the two ways, and what it has seen. `serve` makes the service, its front and, where the engine takes part, the
    backend in front of the handler.
    """

    front: Front
    sessions: Sessions
    session: McpSession

    def __init__(self, rig: Rig, engine: bool, policies: BackendPolicies, steps: tuple[Step, ...]) -> None:
        self.counted: list[tuple[object, ...]] = []
        self.contexts: list[RequestContext] = []
        self.in_python = 0
        self.meter = McpTargetMeter(SEGMENT, "only", "only")
        handler = HandlerBackend(rig.worker, "only", self.handle)
        direct = self.serve(rig, handler, policies, steps)
        rig.backend = BackendPlan("only", "mcp", direct if engine else handler)
        rig.route = RoutePlan("r", "default", "", (rig.backend,), (1,))
        rig.listener.routes = RouteTable([RouteRule(target=rig.route)])
        rig.listener.response_steps = (PythonStep("watch", self.watch),)

    def serve(self, rig: Rig, handler: HandlerBackend, policies: BackendPolicies, steps: tuple[Step, ...]) -> Backend:
        raise NotImplementedError

    async def handle(self, call: Any) -> None:
        self.in_python += 1
        await self.front.handle(call)

    def watch(self, context: RequestContext) -> None:
        self.contexts.append(context)
        shown = (context.dynamic or {}).get("mcp")
        if shown is not None:
            members = [key for key in ("methodName", "sessionId", "tool", "prompt") if key in shown]
            context.add_response_header("x-mcp", json.dumps([[key, shown[key]] for key in members]))

    def count(self, call: BackendCall, telemetry: RequestTelemetry) -> None:
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
    metered: tuple[str, str | None]


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
    """`python`: how many of the requests Python has to look at; None where that is all of them. `metered`: what the
    target's meter knows, where that matters (see `known_by`).
    """

    name: str
    script: Script = body(RESULT)
    requests: tuple[bytes, ...] = (request(),)
    python: int | None = 0
    policies: BackendPolicies = BackendPolicies()
    steps: tuple[Step, ...] = ()
    metered: tuple[str, str | None] | None = None


def call(method: str, **params: object) -> bytes:
    return request(json.dumps({"jsonrpc": "2.0", "id": "a\"1", "method": method, "params": params}).encode())



def plain(message: Message) -> Any:
    """A message without what is never the same: the date, ids of events, and those of sessions that begin with it."""
    fields = [pair for pair in message.fields if pair[0].lower() != "date"]
    fields = [(name, "new" if name == "mcp-session-id" and value not in KNOWN else value) for name, value in fields]
    return message.start, fields, EVENT_ID.sub(b"id: new", message.body), message.trailers


def known_by(meter: McpTargetMeter) -> tuple[str, str | None]:
    """The state of a target that was called for the first time, and its error."""
    state: dict[str, Any] = meter.state()
    return "down" if state.get("failed") else "up" if state else "unknown", state.get("error")


async def asked(rig: Rig, case: Case, engine: bool, kind: type[Side]) -> tuple[Seen, int]:
    """What one way brings for a case, and how many of its requests Python looked at."""
    rig.script = case.script
    rig.seen.clear()
    side = kind(rig, engine, case.policies, case.steps)
    client = await rig.client()
    answers = [plain(await client.ask(data)) for data in case.requests]
    client.close()
    await rig.wait(lambda: not [task for task in rig.tasks if "handler" in task.get_name()], "handlers over")
    await rig.wait(lambda: len(side.contexts) == len(answers), "all are answered")
    await side.sessions.aclose()
    found = Seen(answers, [plain(one) for one in rig.seen], side.counted, side.logged(), side.session.busy, known_by(side.meter))
    return found, side.in_python
