"""Agents that speak A2A, behind a gateway: the official SDK as client and as server, in both published versions."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import brotli
import httpx
import pytest
from a2a.client import A2ACardResolver
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import TaskNotFoundError
from a2a.utils.signing import NoSignatureError, create_agent_card_signer, create_signature_verifier
from tests.end_to_end.a2a_rig import INTERFACES, Agent, asking, client_of, words_of
from tests.end_to_end.provider_stand_in import StandIn, whole

pytestmark = pytest.mark.warm

Start = Callable[..., Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
CARD = "/.well-known/agent-card.json"
OLD_CARD = "/.well-known/agent.json"
EVERY = pytest.mark.parametrize(("binding", "version"), [(one[0], one[1]) for one in INTERFACES])
# What one call is called, in each version.
NAMES = {
    "0.3": ("message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe"),
    "1.0": ("SendMessage", "SendStreamingMessage", "GetTask", "CancelTask", "SubscribeToTask"),
}
BELOW = """
gateways: {default: {port: {port}}}
routes:
- name: agent
  matches: [{path: {pathPrefix: /agents/echo}}]
  policies: {urlRewrite: {path: {prefix: /}}}
  backends: [{host: "127.0.0.1:%d", policies: {a2a: {}}}]
"""
WHOLE = """
gateways: {default: {port: {port}}}
routes: [{name: agent, policies: {a2a: {}}, backends: [{host: "127.0.0.1:%d"}]}]
"""


@pytest.fixture
def agent() -> Iterator[Agent]:
    found = Agent()
    yield found
    found.close()


def run(test: Callable[[], Any]) -> None:
    asyncio.run(test())


def method_of(version: str, index: int) -> str:
    return f"a2a.method={NAMES[version][index]} "


@EVERY
def test_the_sdk_talks_to_an_agent_below_a_path(gateway: Start, agent: Agent, binding: str, version: str) -> None:
    running = gateway(BELOW % agent.port)
    base = f"{running.url}/agents/echo"

    async def talk() -> None:
        async with client_of(base, binding, version) as (card, client):
            assert {one.url for one in card.supported_interfaces} == {f"{base}/rpc", f"{base}/rest"}
            # A whole answer of a stream, in pieces.
            pieces: list[str] = []
            async for event in client.send_message(asking("one two three")):
                pieces += [part.text for part in event.artifact_update.artifact.parts]
                task_id = event.task.id or event.status_update.task_id or event.artifact_update.task_id
            assert pieces == ["one", "two", "three"]
            task = await client.get_task(GetTaskRequest(id=task_id))
            assert (task.status.state, words_of(task)) == (TaskState.TASK_STATE_COMPLETED, ["one", "two", "three"])
            # A task that goes on, seen by another stream, and its end.
            events = client.send_message(asking("hold"))
            held = (await anext(events)).task
            again = client.subscribe(SubscribeToTaskRequest(id=held.id))
            await anext(again)
            cancelled = await client.cancel_task(CancelTaskRequest(id=held.id))
            assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
            assert [event async for event in events]
            assert [event async for event in again]
            if (binding, version) == ("HTTP+JSON", "0.3"):
                return                    # whose client in the SDK knows no lists of these
            config = await client.create_task_push_notification_config(
                TaskPushNotificationConfig(task_id=held.id, id="c", url="http://127.0.0.1:1/told")
            )
            assert config.url == "http://127.0.0.1:1/told"
            found = await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(task_id=held.id, id="c"))
            assert found.id == "c"
            listed = await client.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=held.id))
            assert len(listed.configs) == 1
            await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(task_id=held.id, id="c"))
            with pytest.raises(TaskNotFoundError):
                await client.get_task(GetTaskRequest(id="of nobody"))

    run(talk)
    for index in range(1, 5):
        running.wait_log(method_of(version, index))
    assert "protocol=a2a" in running.log()


def rpc(method: str, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


def last_line(running: Any, needle: str = "a2a") -> str:
    running.wait_log(needle)
    return next(line for line in reversed(running.log().splitlines()) if needle in line)


def test_a_stream_passes_event_by_event(gateway: Start, agent: Agent) -> None:
    running = gateway(WHOLE % agent.port)
    go = threading.Semaphore(0)
    agent.executor.gate = lambda: go.acquire(blocking=False)

    async def talk() -> None:
        async with client_of(running.url, "JSONRPC", "1.0") as (_, client):
            came: list[str] = []
            events = client.send_message(asking("a b c"))
            for expected in ("a", "b", "c"):
                go.release()                  # the agent says the next word only now
                while expected not in came:
                    came += [part.text for part in (await anext(events)).artifact_update.artifact.parts]
                assert came[-1] == expected
            assert [event async for event in events][-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED

    run(talk)
    line = last_line(running, "SendStreamingMessage")
    assert "outcome" not in line


def test_the_log_says_what_came_of_a_call(gateway: Start) -> None:
    task = {"id": "t", "contextId": "c-1", "status": {"state": "completed"}, "kind": "task"}
    newer = {"id": "t", "contextId": "c-2", "status": {"state": "TASK_STATE_WORKING"}}
    stand_in = StandIn(
        whole({"jsonrpc": "2.0", "id": 7, "result": task}),
        whole({"jsonrpc": "2.0", "id": 7, "result": {"task": newer}}),
        whole({"jsonrpc": "2.0", "id": 7, "error": {"code": -32001, "message": "no such task"}}),
        whole(gzip.compress(json.dumps({"result": {"message": {"contextId": "c-3"}}}).encode()), content_encoding="gzip"),
        whole(newer),
        whole({"error": {"code": 404, "status": "NOT_FOUND"}}, 404),
        whole({"jsonrpc": "2.0", "id": 7}),
        whole(b"{"),
        whole({"result": "x"}),
    )
    running = gateway(WHOLE % stand_in.port)
    with httpx.Client(base_url=running.url, timeout=60) as client:
        for method, path, body, told in (
            ("POST", "/1", rpc("message/send"), "a2a.method=message/send a2a.response.outcome=success a2a.result.kind=task "
             "a2a.task.state=completed a2a.context.id=c-1"),
            ("POST", "/2", rpc("SendMessage"), "a2a.method=SendMessage a2a.response.outcome=success a2a.result.kind=task "
             "a2a.task.state=TASK_STATE_WORKING a2a.context.id=c-2"),
            ("POST", "/3", rpc("tasks/get"), "a2a.method=tasks/get a2a.response.outcome=error a2a.response.error_code=-32001"),
            ("POST", "/4", {"params": {"method": "inner"}, "method": "SendMessage"}, "a2a.method=SendMessage "
             "a2a.response.outcome=success a2a.result.kind=message a2a.context.id=c-3"),
            ("GET", "/tasks/t", None, "a2a.method=GetTask a2a.response.outcome=success a2a.task.state=TASK_STATE_WORKING "
             "a2a.context.id=c-2"),
            ("GET", "/v1/tasks/t", None, "a2a.method=tasks/get a2a.response.outcome=error a2a.response.error_code=404"),
            ("POST", "/7", rpc("CancelTask"), "a2a.method=CancelTask a2a.response.outcome=unknown"),
            ("POST", "/8", {"no": "method"}, "a2a.method=unknown"),
            ("DELETE", "/9", rpc("SendMessage"), ""),
        ):  # fmt: skip
            sent = None if body is None else json.dumps(body).encode()
            headers = {} if sent is None else {"content-type": "application/json; charset=utf-8"}
            client.request(method, path, content=sent, headers=headers)
            line = last_line(running, f"http.path={path} ")
            assert f"protocol=a2a {told}".strip() in line, line
            assert ("a2a." in line) == bool(told)
            if body is not None:
                assert stand_in.last.body == sent
        text = client.post("/10", content=b"hello", headers={"content-type": "text/plain"})
        assert text.status_code == 200
        assert "a2a.method=unknown" in last_line(running, "http.path=/10 ")
    assert running.metric("gw_requests_total{") == 10
    assert any("gw_requests_total" in name and 'protocol="a2a"' in name for name in running._samples())
    stand_in.close()


def test_long_bodies_go_on_as_they_came(gateway: Start) -> None:
    stand_in = StandIn(whole({"result": {"text": "y" * 3_000_000}}))
    running = gateway(WHOLE % stand_in.port)
    blob = "x" * 3_000_000
    for path, body, method in (
        ("/first", json.dumps(rpc("message/send", data=blob)).encode(), "message/send"),
        ("/last", json.dumps({"params": {"data": blob}, "method": "message/send"}).encode(), "unknown"),
    ):
        answer = httpx.post(running.url + path, content=body, headers={"content-type": "application/json"}, timeout=60)
        assert len(answer.json()["result"]["text"]) == 3_000_000
        assert stand_in.last.body == body
        line = last_line(running, f"http.path={path} ")
        assert f"a2a.method={method} " in line
        assert "outcome" not in line
    stand_in.close()


OLD = {"name": "old", "protocolVersion": "0.2.5", "url": "http://10.0.0.9:9999/", "capabilities": {}, "skills": []}
LEGACY = {
    "name": "legacy", "url": "https://agent.internal/base/rpc?v=1", "preferredTransport": "JSONRPC",
    "additionalInterfaces": [
        {"transport": "JSONRPC", "url": "https://agent.internal/base/rpc?v=1"},
        {"transport": "HTTP+JSON", "url": "https://agent.internal/base"},
        {"transport": "GRPC", "url": "agent.internal:50051"},
        {"transport": "ODD"},
    ],
    "documentationUrl": "https://agent.internal/base/docs", "signatures": [{"protected": "e30", "signature": "eA"}],
}  # fmt: skip
MODERN = {"name": "modern", "supportedInterfaces": [{"url": "http://agent.internal:1/base/a2a/", "protocolBinding": "JSONRPC"}]}


def test_cards_of_all_versions_lead_to_the_gateway(gateway: Start) -> None:
    stand_in = StandIn(whole(OLD), whole(LEGACY), whole(MODERN))
    text = """
        gateways: {default: {port: {port}}}
        routes:
        - {name: old, matches: [{path: {exact: /.well-known/agent.json}}], backends: [{host: "127.0.0.1:%d", policies: {a2a: {}}}]}
        - name: agents
          matches: [{path: {pathPrefix: /agents}}]
          policies: {urlRewrite: {path: {prefix: /base}}, a2a: {}}
          backends: [{host: "127.0.0.1:%d"}]
    """
    running = gateway(text % (stand_in.port, stand_in.port))
    with httpx.Client(base_url=running.url, timeout=60) as client:
        assert client.get(OLD_CARD).json() == OLD | {"url": running.url}
        found = client.get(f"/agents{CARD}", headers={"x-forwarded-proto": "https", "range": "bytes=0-9"}).json()
        assert "range" not in stand_in.last.headers
        assert stand_in.last.headers["accept-encoding"] == "identity"
        base = f"https://127.0.0.1:{running.port}/agents"
        assert found == LEGACY | {
            "url": f"{base}/rpc?v=1", "signatures": [],
            "additionalInterfaces": [
                {"transport": "JSONRPC", "url": f"{base}/rpc?v=1"}, {"transport": "HTTP+JSON", "url": base},
                {"transport": "GRPC", "url": f"127.0.0.1:{running.port}"}, {"transport": "ODD"},
            ],
        }  # fmt: skip
        assert "a2a.card.signatures_removed=1" in last_line(running, "signatures")
        found = client.get(f"/agents{CARD}", headers={"host": "agents.example"}).json()
        assert found["supportedInterfaces"][0]["url"] == "http://agents.example/agents/a2a/"
    stand_in.close()


def test_what_a_proxy_in_front_says_counts_where_it_is_trusted(gateway: Start) -> None:
    stand_in = StandIn(whole(OLD))
    told = {"x-forwarded-proto": "https", "x-forwarded-host": "agents.example"}
    for settings, url in (
        ("", "https://127.0.0.1:%d"),
        ("forwardingHeaders: {xForwarded: true}", "http://127.0.0.1:%d"),
        ("forwardingHeaders: {xForwarded: true, trustedHops: 1}", "https://agents.example"),
    ):
        running = gateway(WHOLE % stand_in.port, settings=settings)
        found = httpx.get(running.url + CARD, headers=told, timeout=60).json()["url"]
        assert found == (url % running.port if "%d" in url else url), settings
    stand_in.close()


def test_heads_of_cards(gateway: Start) -> None:
    raw = json.dumps(OLD).encode()
    stand_in = StandIn(
        whole(gzip.compress(raw), content_encoding="gzip", etag='"one"', content_md5="x", accept_ranges="bytes"),
        whole(brotli.compress(raw), content_encoding="br", etag='W/"two"'),
    )
    running = gateway(WHOLE % stand_in.port)
    with httpx.Client(base_url=running.url, timeout=60) as client:
        answer = client.get(CARD)
        assert answer.json()["url"] == running.url
        kept = ("etag", "content-encoding", "content-md5", "accept-ranges", "content-length")
        assert [answer.headers.get(name) for name in kept] == ['W/"one"', None, None, None, str(len(answer.content))]
        answer = client.get(CARD)
        assert (answer.json()["url"], answer.headers["etag"]) == (running.url, 'W/"two"')
    stand_in.close()


def test_other_answers_than_cards_go_on(gateway: Start, agent: Agent) -> None:
    running = gateway(WHOLE % agent.port)
    with httpx.Client(base_url=running.url, timeout=60) as client:
        first = client.get(CARD)
        again = client.get(CARD, headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.headers["etag"]) == (304, first.headers["etag"])
        head = client.head(CARD)
        assert (head.status_code, head.headers.get("content-length")) == (200, None)
    refusing = StandIn(whole({"error": "who are you"}, 401, www_authenticate="Bearer"))
    running = gateway(WHOLE % refusing.port)
    answer = httpx.get(running.url + CARD, timeout=60)
    assert (answer.status_code, answer.json(), answer.headers["www-authenticate"]) == (401, {"error": "who are you"}, "Bearer")
    refusing.close()


@pytest.mark.parametrize(("body", "fields", "told"), [
    (b"<html>", {}, "the agent card is not JSON"),
    (b"[1]", {}, "the agent card is not a JSON object"),
    (b"{}", {}, "the agent card has neither `url` nor `supportedInterfaces`"),
    (b'{"supportedInterfaces": {}}', {}, "the interfaces of the agent card are not a list"),
    (b'{"url": "http://a/", "url": "http://b/"}', {}, "a member of the agent card stands twice"),
    (b"{}", {"content_encoding": "gzip"}, ""),
    (b"{}", {"content_encoding": "rot13"}, "the content coding of the agent card"),
    (b'{"name": "' + b"x" * 3_000_000 + b'"}', {}, "the agent card is too long"),
])  # fmt: skip
def test_cards_that_cannot_be_rewritten_are_refused(gateway: Start, body: bytes, fields: dict[str, str], told: str) -> None:
    stand_in = StandIn(whole(body, **fields))
    running = gateway(WHOLE % stand_in.port)
    answer = httpx.get(running.url + CARD, timeout=60)
    assert answer.status_code == 503
    assert answer.text.startswith(f"processing failed: {told}")
    running.wait_log("reason=UpstreamFailure")
    stand_in.close()


def test_a_route_that_is_no_agents_shows_the_card_as_it_is(gateway: Start) -> None:
    stand_in = StandIn(whole(OLD))
    running = gateway(WHOLE.replace("a2a: {}", "") % stand_in.port)
    assert httpx.get(running.url + CARD, timeout=60).json() == OLD
    assert "protocol=http" in last_line(running, "agent-card")
    stand_in.close()


def test_a_service_says_that_it_is_an_agent(gateway: Start, agent: Agent) -> None:
    text = """
        gateways: {default: {port: {port}}}
        services:
        - {name: echo, namespace: a, hostname: echo.a.internal, ports: {"80": %d}, appProtocols: {"80": headgate.dev/a2a}}
        workloads:
        - {uid: w, name: w, namespace: a, workloadIps: [127.0.0.1], services: {a/echo.a.internal: {"80": %d}}}
        routes: [{name: agent, backends: [{service: {name: a/echo.a.internal, port: 80}}]}]
    """
    running = gateway(text % (agent.port, agent.port))

    async def talk() -> None:
        async with client_of(running.url, "JSONRPC", "0.3", path=OLD_CARD) as (_, client):
            events = [event async for event in client.send_message(asking("hi"))]
            assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED

    run(talk)
    assert "protocol=a2a" in last_line(running, "message/stream")


def test_failed_attempts_are_made_again(gateway: Start) -> None:
    stand_in = StandIn(whole({"error": {"code": 1}}, 503), whole({"result": {"kind": "message"}}))
    text = """
        gateways: {default: {port: {port}}}
        routes: [{policies: {a2a: {}, retry: {attempts: 2, codes: [503]}}, backends: [{host: "127.0.0.1:%d"}]}]
    """
    running = gateway(text % stand_in.port)
    answer = httpx.post(running.url, json=rpc("SendMessage"), timeout=60)
    assert answer.json() == {"result": {"kind": "message"}}
    line = last_line(running, "SendMessage")
    assert line.count("a2a.method=") == 1
    assert "a2a.response.outcome=success a2a.result.kind=message retry.attempt=1" in line
    stand_in.close()


def test_policies_see_the_protocol(gateway: Start, agent: Agent) -> None:
    text = """
        gateways: {default: {port: {port}}}
        routes:
        - backends:
          - host: "127.0.0.1:%d"
            policies: {a2a: {}, requestHeaderModifier: {set: {x-a: b}}, authorization: {rules: ['backend.protocol == "a2a"']}}
    """
    running = gateway(text % agent.port)
    assert httpx.get(running.url + CARD, timeout=60).status_code == 200
    assert agent.seen[-1][2]["x-a"] == "b"


def test_the_example(gateway: Start, agent: Agent) -> None:
    other = Agent()
    text = (EXAMPLES / "a2a.yaml").read_text().replace("port: 3000", "port: {port}")
    places = {"WEATHER": f"127.0.0.1:{agent.port}", "TRAVEL": f"127.0.0.1:{other.port}", "TRAVEL_KEY": "tk"}
    running = gateway(text, environment=places)

    async def talk() -> None:
        for path, headers in (("weather", {}), ("travel", {"authorization": "Bearer tk"})):
            base = f"{running.url}/agents/{path}"
            async with client_of(base, "JSONRPC", "1.0", headers=headers) as (card, client):
                assert {one.url for one in card.supported_interfaces} == {f"{base}/rpc", f"{base}/rest"}
                assert [event async for event in client.send_message(asking("hi"))]

    run(talk)
    assert httpx.get(f"{running.url}/agents/travel{CARD}", timeout=60).status_code == 401
    # A client of HTTP/2 has the gateway find out whether the agent speaks that, too: `PRI *`.
    assert {path for _, path, _ in agent.seen + other.seen} - {"*"} == {CARD, "/rpc"}
    assert "team=travel" in last_line(running, "http.path=/agents/travel/rpc")
    other.close()


def test_signed_cards(gateway: Start, agent: Agent) -> None:
    """The SDK's own signature: it holds at the agent, and is gone behind the gateway, where it would not."""
    key = "k" * 64
    create_agent_card_signer(key, {"alg": "HS256", "kid": "1", "typ": "JOSE", "jku": None})(agent.card)
    verify = create_signature_verifier(lambda _kid, _jku: key, ["HS256"])

    async def talk() -> None:
        running = gateway(BELOW % agent.port)
        async with httpx.AsyncClient(timeout=60) as http:
            card = await A2ACardResolver(http, f"http://127.0.0.1:{agent.port}").get_agent_card(signature_verifier=verify)
            assert len(card.signatures) == 1
            behind = A2ACardResolver(http, f"{running.url}/agents/echo")
            assert not (await behind.get_agent_card()).signatures
            with pytest.raises(NoSignatureError):
                await behind.get_agent_card(signature_verifier=verify)
        assert "a2a.card.signatures_removed=1" in last_line(running, "signatures")

    run(talk)
