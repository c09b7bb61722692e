"""Calls of one of several targets, answered by the engine and by Python alone: what the client and the target get, what is
logged and what is counted does not differ.
"""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest
from mcp_direct_rig import (
    CALL,
    ENDED,
    ERROR,
    EVENT,
    JSON,
    KEY,
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
    raw,
    request,
)
from rig import Rig, Upstream, on_rig

from headgate.backend.mcp.direct_service import DirectService
from headgate.backend.mcp.federation.link import HttpLink
from headgate.backend.mcp.federation.modern_link import EitherLink
from headgate.backend.mcp.federation.requests import FederationOptions
from headgate.backend.mcp.federation.service import FederationService
from headgate.backend.mcp.front import Front, FrontOptions
from headgate.backend.mcp.http_service import MAX_BODY
from headgate.backend.mcp.session import SessionIds, SessionLimits, Sessions
from headgate.backend.mcp.targets.remote import Remote
from headgate.ir.endpoint import Endpoint
from headgate.ir.mcp import StreamableHttpTarget
from headgate.ir.policies import BackendPolicies
from headgate_engine.context.request import Reply
from headgate_engine.link.client import HttpClient
from headgate_engine.link.handler import HandlerBackend
from headgate_engine.mcp.direct import FederatedBackend
from headgate_engine.mcp.settings import DirectTarget
from headgate_engine.plan.step import Step
from headgate_engine.steps.headers import RequestHeaderStep
from headgate_engine.steps.reply import ReplyStep

SEVERAL = STATES.seal([("t1", "s-1"), ("t2", None)], OWNER)
AT_T1 = CALL.replace(b'"ping"', b'"t1_ping"')
# What the target's answer says beside the result, so that Python has to name it anew.
TASK = b'{"jsonrpc":"2.0","id":7,"result":{"task":{"taskId":"5"}}}'


class NoRelay:
    """There is one worker."""

    index = 0

    def knows(self, _worker: int) -> bool:
        return False


class FederatedSide(Side):
    """Two targets behind one session. `prefixed`: names carry their target; `version`: what the first target agreed to."""

    prefixed = True
    version: str | None = None
    keepalive_s = 0.0

    def serve(self, rig: Rig, handler: HandlerBackend, policies: BackendPolicies, steps: tuple[Step, ...]) -> FederatedBackend:
        client = HttpClient(rig.pool, "backend:80")
        links: Any = {}
        direct = {}
        for name in ("t1", "t2"):
            target = StreamableHttpTarget(key=name, name=name, endpoint=Endpoint(key="e", host="backend", port=80), policies=policies)
            remote = Remote(client, "backend:80", policies, steps)
            links[name] = lambda state, t=target, r=remote: EitherLink(lambda known: HttpLink(t, r, known, self.meter), state)
            direct[name] = DirectTarget(client, target.path, steps=steps, timeout_ms=policies.request_timeout_ms or 0, meter=self.meter)
        self.sessions = Sessions(0, SessionIds(KEY), SessionLimits(60, 10), resumable=True)
        options = FederationOptions(prefixed=self.prefixed)
        relay: Any = NoRelay()
        service = FederationService("several", links, self.sessions, relay, options, STATES)
        with pytest.raises(StopIteration) as found:
            service._resumed(SEVERAL, OWNER).send(None)  # nobody is asked, so it waits for nothing
        self.session = found.value.value
        self.session.server.owners["tools/list", "ping"] = "t1"
        self.session.server.links["t1"].direct.version = self.version
        self.sessions.tombstone(ENDED)
        self.front = Front(service, Sessionless(), None, self.count, FrontOptions())
        own = DirectService(self.sessions, None, BackendPolicies(), self.count)
        own.keepalive_s = self.keepalive_s or own.keepalive_s
        return FederatedBackend(handler, direct, own, prefixed=self.prefixed)


class UnprefixedSide(FederatedSide):
    prefixed = False


class AgreedSide(FederatedSide):
    version = "2025-03-26"


class ImpatientSide(FederatedSide):
    keepalive_s = 0.01


def at(data: bytes = AT_T1, **fields: str | None) -> bytes:
    return request(data, **{"mcp_session_id": SEVERAL, **fields})


def named(method: str, name: str) -> bytes:
    return call(method, name=name).replace(request().split(b"mcp-session-id: ")[1].split(b"\r\n")[0], SEVERAL.encode())


OTHER_ID = body(RESULT.replace(b'"id":7', b'"id":"a\\"1"'))
SHORT = BackendPolicies(request_timeout_ms=50)
CASES = [
    Case("one JSON message", requests=(at(),)),
    Case("two calls on one connection", requests=(at(), at())),
    Case("the other target, which has no session", requests=(at(CALL.replace(b'"ping"', b'"t2_ping"')),)),
    Case("a prompt", OTHER_ID, requests=(named("prompts/get", "t1_p"),)),
    Case("a name with the mark in it", OTHER_ID, requests=(named("tools/call", "t1_a_b"),)),
    Case("a name that is written with escapes", requests=(at(CALL.replace(b'"ping"', b'"t1_\\u0070ing"')),)),
    Case("an error of the tool", body(ERROR), requests=(at(),)),
    Case("a status that is not 200", body(RESULT, status=201), requests=(at(),)),
    Case("a type with a parameter", body(RESULT, "Content-Type: Application/JSON; charset=utf-8\r\n"), requests=(at(),)),
    Case("the answer names another session", body(RESULT, JSON + "mcp-session-id: s-9\r\n"), requests=(at(),)),
    Case("line breaks in the answer", body(b'{"jsonrpc":"2.0",\r\n"id":7,\n"result":{}}'), requests=(at(),)),
    Case("events were seen before", requests=(at(last_event_id="5"),)),
    Case("no version is named", requests=(at(mcp_protocol_version=None),)),
    Case("a policy of the target", requests=(at(),), steps=(RequestHeaderStep(added=[("x-key", "secret")], replaced=[("host", "other:1")], removed=["x-own"]),)),
    Case("a target with a time-out that answers in time", requests=(at(),), policies=BackendPolicies(request_timeout_ms=60_000)),
    # -- Python goes on with what the engine has begun
    Case("a stream of one event", body(EVENT, SSE), requests=(at(),), python=1),
    Case("news before the answer", body(NEWS + EVENT, SSE), requests=(at(),), python=1),
    Case("a stream that ends without an answer", body(NEWS, SSE), requests=(at(),), python=1, metered=("up", "there was no answer")),
    Case("a task", body(TASK), requests=(at(),), python=1),
    Case("an id that is written in another way", body(b'{"jsonrpc":"2.0","id":7.0,"result":{}}'), requests=(at(),), python=1),
    Case("a response to another request", body(RESULT.replace(b":7", b":8")), requests=(at(),), python=1),
    Case("an error without an id", body(ERROR.replace(b'"id":7,', b"")), requests=(at(),), python=1),
    Case("a result that is no object", body(b'{"jsonrpc":"2.0","id":7,"result":5}'), requests=(at(),), python=1),
    Case("an answer that is no message", body(b"[]"), requests=(at(),), python=1),
    Case("a policy that refuses", requests=(at(),), steps=(ReplyStep("r", Reply(429, b"later", ((b"retry-after", b"3"),), "Limit")),), python=1, metered=("unknown", None)),
    Case("401 of the target", body(b"", "www-authenticate: Bearer\r\n", 401), requests=(at(),), python=1),
    Case("a session that the target has forgotten", body(b"gone", "content-type: text/plain\r\n", 404), requests=(at(),), python=1),
    Case("500 of the target", body(b"{}", JSON, 500), requests=(at(),), python=1, metered=("down", "status 500")),
    Case("202 of the target", body(b"", "", 202), requests=(at(),), python=1),
    Case("another type", body(b"<p>", "content-type: text/html\r\n"), requests=(at(),), python=1),
    Case("an empty answer", body(b""), requests=(at(),), python=1),
    Case("an answer in a coding", body(gzip.compress(RESULT, mtime=0), JSON + "content-encoding: gzip\r\n"), requests=(at(),), python=1),
    Case("an answer that is too long", body(b" " * (MAX_BODY + 1)), requests=(at(),), python=1),
    Case("the connection ends before an answer", raw(), requests=(at(),), python=1),
    Case("the connection breaks in the answer", raw(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"), requests=(at(),), python=1),
    Case("a target that says nothing", raw(silent=True), requests=(at(),), policies=SHORT, python=1),
    # -- Python from the beginning
    Case("a list", body(b'{"jsonrpc":"2.0","id":"a\\"1","result":{"tools":[]}}'), requests=(named("tools/list", "t1_p"),), python=None),
    Case("a target that there is not", requests=(named("tools/call", "t3_ping"),), python=None),
    Case("no target is named", requests=(at(CALL),), python=None),
    Case("nothing behind the target", requests=(named("tools/call", "t1_"),), python=None),
    Case("a session that was ended", requests=(at(mcp_session_id=ENDED),), python=None),
    Case("a name that no field can hold", requests=(named("tools/call", "t1_pïng"),), python=None),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@on_rig()
async def test_both_ways_bring_the_same(rig: Rig, case: Case) -> None:
    expected, all_of_them = await asked(rig, case, False, FederatedSide)
    found, looked_at = await asked(rig, case, True, FederatedSide)
    assert all_of_them == len(case.requests)
    for name, one, other in zip(expected._fields, expected, found, strict=True):
        assert other == one, name
    assert looked_at == (len(case.requests) if case.python is None else case.python)
    assert found.busy == 0
    assert case.metered in (None, found.metered)


@pytest.mark.parametrize(
    ("kind", "data", "looked_at"),
    [(UnprefixedSide, CALL, 0), (AgreedSide, AT_T1, 0)],
    ids=["names without targets", "a target of another revision"],
)
@on_rig()
async def test_other_backends_bring_the_same(rig: Rig, kind: type[Side], data: bytes, looked_at: int) -> None:
    case = Case("one", requests=(at(data),))
    expected, _ = await asked(rig, case, False, kind)
    found, in_python = await asked(rig, case, True, kind)
    assert (found, in_python) == (expected, looked_at)
    version = dict(found.requests[0][1])["mcp-protocol-version"]
    assert version == (kind.version if kind is AgreedSide else "2025-06-18")  # type: ignore[attr-defined]


@on_rig()
async def test_a_client_that_waits_long_hears_that_we_are_there(rig: Rig) -> None:
    """The engine hands the call over when the client would have got a first comment, and Python waits for the target."""
    answer = asyncio.Event()

    async def script(up: Upstream) -> None:
        await up.request()
        await answer.wait()
        await up.reply(RESULT, 200, JSON)

    rig.script = script
    side = ImpatientSide(rig, True, BackendPolicies(), ())
    client = await rig.client()
    await client.send(at())
    await rig.wait(lambda: rig.seen, "the target has the call")
    await rig.wait(lambda: side.in_python == 1, "Python has taken over")
    answer.set()
    await client.intake.until(RESULT)
    client.close()
    await rig.wait(lambda: side.session.busy == 0, "nobody uses the session")
    assert len(rig.seen) == 1, "the target is asked once"
    assert [one[3] for one in side.counted] == ["ping"]
    await side.sessions.aclose()
