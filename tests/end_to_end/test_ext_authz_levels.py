"""`extAuthz` on every level that may have it, over both protocols: it lets pass, it refuses, it fails, and expressions see what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.ext_authz_rig import GrpcAuthorizer, HttpAuthorizer, shown
from tests.end_to_end.federation_rig import ACCEPT, INITIALIZE, SAMPLE
from tests.end_to_end.provider_stand_in import StandIn, chat, whole

pytestmark = pytest.mark.warm

LOG = "frontendPolicies: {accessLog: {add: {told: extauthz.user, code: extauthz.code}}}\n"
PORT = "gateways: {default: {port: {port}}}\n"
GATEWAY = "gateways: {default: {port: {port}, extAuthz: POLICY}}\nroutes: [{backends: [{host: '127.0.0.1:BACKEND'}]}]\n"
ROUTE = PORT + "routes: [{policies: {extAuthz: POLICY}, backends: [{host: '127.0.0.1:BACKEND'}]}]\n"
BACKEND = PORT + "routes: [{backends: [{host: '127.0.0.1:BACKEND', policies: {extAuthz: POLICY}}]}]\n"
LLM = PORT + """
llm:
  policies: {extAuthz: POLICY}
  models: [{name: m, provider: openai, params: {baseUrl: 'http://127.0.0.1:BACKEND/v1', apiKey: k}}]
"""
MCP = PORT + f"mcp:\n  policies: {{extAuthz: POLICY}}\n  targets:\n  - name: t\n    {SAMPLE}\n"
UI = PORT + "ui: {policies: {extAuthz: POLICY}}\n"

Ask = Callable[[str], httpx.Response]
WHO = {"x-who": "ann"}


def ask_plain(url: str) -> httpx.Response:
    return httpx.get(url + "/p", headers=WHO, timeout=60)


def ask_model(url: str) -> httpx.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    return httpx.post(url + "/v1/chat/completions", json=body, headers=WHO, timeout=60)


def ask_tools(url: str) -> httpx.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    return httpx.post(url + "/mcp", json=message, headers={**ACCEPT, **WHO}, timeout=60)


def ask_page(url: str) -> httpx.Response:
    return httpx.get(url + "/ui/", headers=WHO, timeout=60)


LEVELS: dict[str, tuple[str, Ask]] = {
    "gateway": (GATEWAY, ask_plain),
    "route": (ROUTE, ask_plain),
    "backend": (BACKEND, ask_plain),
    "llm": (LLM, ask_model),
    "mcp": (MCP, ask_tools),
    "ui": (UI, ask_page),
}


class Grpc:
    """A service that speaks Envoy's protocol."""

    def __init__(self) -> None:
        self.peer = GrpcAuthorizer()
        self.policy: dict[str, Any] = {"host": f"127.0.0.1:{self.peer.port}"}
        self.passing()

    def passing(self) -> None:
        self.peer.react = lambda question: {"ok_response": {}, "dynamic_metadata": {"user": "ann", "code": "7"}}

    def refusing(self) -> None:
        self.peer.react = lambda question: {
            "status": {"code": 7},
            "denied_response": {
                "status": {"code": 451}, "body": "not you", "headers": [{"header": {"key": "x-why", "value": "because"}}],
            },
        }  # fmt: skip

    def seen(self) -> list[tuple[str, str]]:
        """Method and x-who of each question."""
        asked = [one["attributes"]["request"]["http"] for one in self.peer.seen]
        return [(one["method"], one["headers"]["x-who"]) for one in asked]


class Http:
    """A service that is asked over HTTP."""

    def __init__(self) -> None:
        self.peer = HttpAuthorizer()
        metadata = {"user": "response.headers['x-user']", "code": "string(response.code - 193)"}
        self.policy: dict[str, Any] = {
            "host": f"127.0.0.1:{self.peer.port}", "protocol": {"http": {"metadata": metadata}}, "includeRequestHeaders": ["x-who"],
        }  # fmt: skip
        self.passing()

    def passing(self) -> None:
        self.peer.status, self.peer.fields, self.peer.body = 200, [("x-user", "ann")], b""

    def refusing(self) -> None:
        self.peer.status, self.peer.fields, self.peer.body = 451, [("x-why", "because")], b"not you"

    def seen(self) -> list[tuple[str, str]]:
        return [(one.method, one.fields["x-who"]) for one in self.peer.seen]


@pytest.fixture(params=[Grpc, Http])
def service(request: pytest.FixtureRequest) -> Iterator[Any]:
    found = request.param()
    yield found
    found.peer.stop()


@pytest.fixture
def backend() -> Iterator[StandIn]:
    found = StandIn(whole(chat()))
    yield found
    found.close()


def text_of(level: str, policy: dict[str, Any], backend: StandIn) -> str:
    return LOG + LEVELS[level][0].replace("POLICY", shown(policy)).replace("BACKEND", str(backend.port))


def last_line(running: Any, status: int) -> dict[str, Any]:
    running.wait_log(f'"http.status":{status}')
    [found] = [json.loads(line) for line in running.log().splitlines() if f'"http.status":{status}' in line]
    return dict(found)


@pytest.mark.parametrize("level", LEVELS)
def test_a_level(gateway: Any, service: Any, backend: StandIn, level: str) -> None:
    ask = LEVELS[level][1]
    running = gateway(text_of(level, service.policy, backend), settings="  logging: {format: json}\n")
    assert ask(running.url).status_code == 200
    line = last_line(running, 200)
    assert (line["told"], line["code"]) == ("ann", "7"), "results are variables"
    asked = len(backend.seen)
    service.refusing()
    answer = ask(running.url)
    assert (answer.status_code, answer.text, answer.headers["x-why"]) == (451, "not you", "because")
    assert last_line(running, 451)["reason"] == "ExtAuth"
    method = "GET" if ask in (ask_plain, ask_page) else "POST"
    assert service.seen() == [(method, "ann")] * 2
    assert len(backend.seen) == asked, "nobody else was asked about what it refused"


@pytest.mark.parametrize("level", LEVELS)
def test_a_service_that_is_away(gateway: Any, service: Any, backend: StandIn, level: str) -> None:
    ask = LEVELS[level][1]
    running = gateway(text_of(level, service.policy, backend))
    service.peer.stop()
    answer = ask(running.url)
    assert answer.status_code == 403
    told = answer.json()["error"]["message"] if level == "llm" else answer.text
    assert told.startswith("external authorization failed")
    running.reload(text_of(level, {**service.policy, "failureMode": "allow"}, backend))
    assert ask(running.url).status_code == 200
    service.__init__()


CACHED = ("gateway", "llm", "mcp", "ui")


@pytest.mark.parametrize("level", CACHED)
def test_decisions_are_kept_at_each_level(gateway: Any, service: Any, backend: StandIn, level: str) -> None:
    cache = {"key": ["request.headers['x-who']"], "ttl": "duration('600s')"}
    running = gateway(text_of(level, {**service.policy, "cache": cache}, backend))
    assert [LEVELS[level][1](running.url).status_code for _ in range(3)] == [200] * 3
    assert len(service.seen()) == 1
