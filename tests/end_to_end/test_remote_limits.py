"""`remoteRateLimit`: a service counts requests and tokens, and what it says holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import SAMPLE, Raw, config
from tests.end_to_end.provider_stand_in import StandIn, chat, whole
from tests.end_to_end.rate_limit_rig import Counting, entries, hits

pytestmark = pytest.mark.warm

ROUTE = """
gateways:
  default: {{port: {{port}}}}
routes:
- name: counted
  policies:
    remoteRateLimit: {policy}
  backends:
  - host: 127.0.0.1:{backend}
"""
MODEL = """
gateways:
  default: {{port: {{port}}}}
routes:
- name: counted
  policies:
    remoteRateLimit: {policy}
  backends:
  - ai:
      name: it
      hostOverride: 127.0.0.1:{backend}
      provider: {{openAI: {{}}}}
      tokenize: {tokenize}
"""


@pytest.fixture
def counting() -> Iterator[Counting]:
    found = Counting()
    yield found
    found.stop()


@pytest.fixture
def backend() -> Iterator[StandIn]:
    found = StandIn(whole({"fine": True}))
    yield found
    found.close()


def policy(counting: Counting, *descriptors: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"host": f"127.0.0.1:{counting.port}", "domain": "d", "descriptors": list(descriptors), **more}


def by(cost: str | None = None, **values: str) -> dict[str, Any]:
    found: dict[str, Any] = {"entries": [{"key": key, "value": value} for key, value in values.items()]}
    return found if cost is None else {**found, "cost": cost}


def text(backend: StandIn, value: Any) -> str:
    return ROUTE.format(policy=json.dumps(value), backend=backend.port)


def test_requests_are_counted(gateway: Any, counting: Counting, backend: StandIn) -> None:
    descriptors = (
        by(user="request.headers['x-user']"),
        by("3", path="request.path", number="1", yes="true", raw="b'ab'", unsigned="7u"),
        by(none="jwt.sub"),
        by(double="1.5"),
        by("-1", negative="'cost'"),
        {**by(own="'limit'"), "limitOverride": "{'unit': 'minute', 'requestsPerUnit': 5}"},
        {**by(own="'none'"), "limitOverride": "{'unit': 'week', 'requestsPerUnit': 5}"},
    )
    running = gateway(text(backend, policy(counting, *descriptors)))
    assert httpx.get(running.url + "/p", headers={"x-user": "ann"}).status_code == 200
    [question] = counting.seen
    assert question["domain"] == "d"
    assert entries(question) == [
        {"user": "ann"},
        {"path": "/p", "number": "1", "yes": "true", "raw": "YWI=", "unsigned": "7"},
        {"own": "limit"},
    ]
    assert hits(question) == [None, "3", None]
    assert question["descriptors"][2]["limit"] == {"requests_per_unit": 5, "unit": "MINUTE"}
    running.reload(text(backend, policy(counting, by(none="jwt.sub"))))
    assert httpx.get(running.url).status_code == 200
    assert len(counting.seen) == 1, "without a descriptor nobody is asked"


def test_what_the_service_says(gateway: Any, counting: Counting, backend: StandIn) -> None:
    running = gateway(text(backend, policy(counting, by(a="'b'"))))
    counting.react = lambda question: {
        "overall_code": "OK",
        "statuses": [
            {"code": "OK", "current_limit": {"requests_per_unit": 10, "unit": "MINUTE"}, "limit_remaining": 9,
             "duration_until_reset": "30s"},
            {"code": "OK", "current_limit": {"requests_per_unit": 5, "unit": "HOUR"}, "limit_remaining": 2,
             "duration_until_reset": "100s"},
            {"code": "OK"},
        ],
        "request_headers_to_add": [{"key": "X-Told", "value": "1"}, {"key": "content-length", "value": "7"}],
        "response_headers_to_add": [{"key": "X-More", "value": "2"}],
    }  # fmt: skip
    answer = httpx.get(running.url, headers={"x-told": "evil"})
    names = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-more")
    assert [answer.headers[name] for name in names] == ["5", "2", "100", "2"]
    assert backend.seen[-1].headers["x-told"] == "1"
    assert "content-length" not in backend.seen[-1].headers
    counting.react = lambda question: {
        "overall_code": "OVER_LIMIT",
        "statuses": [{"code": "OVER_LIMIT", "current_limit": {"requests_per_unit": 10, "unit": "MINUTE"}}],
        "response_headers_to_add": [
            {"key": "x-ratelimit-limit", "value": "10, 10;w=60"}, {"key": "x-gw-ratelimited", "value": "true"},
        ],
        "raw_body": "c2xvdyBkb3du",
    }  # fmt: skip
    asked = len(backend.seen)
    answer = httpx.get(running.url)
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (429, "slow down", "text/plain")
    names = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-gw-ratelimited")
    assert [answer.headers.get_list(name) for name in names] == [["10, 10;w=60"], ["0"], ["0"], ["true"]]
    assert len(backend.seen) == asked
    running.wait_log("RateLimit")
    for decision, number in (("passed", 1), ("limited", 1), ("failed", 0)):
        running.wait_metric(f'gw_limit_decisions_total{{limit="remote",decision="{decision}"}}', number)


@pytest.mark.parametrize(("mode", "status"), [(None, 500), ("failClosed", 500), ("failOpen", 200), ("FailOpen", 200)])
def test_a_service_that_fails(
    gateway: Any, counting: Counting, backend: StandIn, mode: str | None, status: int
) -> None:
    more = {} if mode is None else {"failureMode": mode}
    running = gateway(text(backend, policy(counting, by(a="'b'"), **more)))
    counting.react = lambda question: {"overall_code": "UNKNOWN"}
    assert httpx.get(running.url).status_code == status
    counting.stop()
    answer = httpx.get(running.url)
    assert answer.status_code == status
    if status == 500:
        assert answer.text == "rate limit failed"


def test_conditions(gateway: Any, counting: Counting, backend: StandIn) -> None:
    one = policy(counting, by(a="'one'"), condition="request.path == '/one'")
    two = policy(counting, by(a="'two'"))
    running = gateway(text(backend, {"conditional": [one, two]}))
    for path in ("/one", "/two"):
        assert httpx.get(running.url + path).status_code == 200
    assert [entries(question) for question in counting.seen] == [[{"a": "one"}], [{"a": "two"}]]


ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def model_route(counting: Counting, provider: StandIn, *descriptors: dict[str, Any], tokenize: str = "false") -> str:
    found = [{**one, "type": "tokens"} for one in descriptors]
    return MODEL.format(policy=json.dumps(policy(counting, *found)), backend=provider.port, tokenize=tokenize)


def ask(running: Any, **more: Any) -> httpx.Response:
    return httpx.post(running.url + "/v1/chat/completions", json={**ASK, **more}, timeout=60)


def test_tokens_are_looked_at_before_and_counted_behind(gateway: Any, counting: Counting, stand_in: Any) -> None:
    provider = stand_in(whole(chat()))
    weighted = by("llm.outputTokens * 1000 + llm.inputTokens", model="llm.requestModel")
    running = gateway(model_route(counting, provider, by(all="'tokens'"), weighted))
    assert ask(running).status_code == 200
    before, behind = counting.asked(2)
    assert (entries(before), hits(before)) == ([{"all": "tokens"}, {"model": "m"}], ["0", "0"])
    assert hits(behind) == ["18", "7011"]
    counting.react = lambda question: {"overall_code": "OVER_LIMIT"}
    answer = ask(running)
    assert (answer.status_code, answer.json()["error"]["type"] != "") == (429, True)
    assert len(provider.seen) == 1
    assert len(counting.asked(3)) == 3, "a refused request is not counted"


def test_estimates_are_counted_at_once(gateway: Any, counting: Counting, stand_in: Any) -> None:
    running = gateway(model_route(counting, stand_in(whole(chat())), by(all="'tokens'"), tokenize="true"))
    assert ask(running).status_code == 200
    before, behind = counting.asked(2)
    [estimate], [rest] = hits(before), hits(behind)
    assert estimate is not None
    assert rest is not None
    assert int(estimate) > 0
    assert int(estimate) + int(rest) == 18


def test_errors_cost_nothing(gateway: Any, counting: Counting, stand_in: Any) -> None:
    provider = stand_in(whole({"error": {"message": "no"}}, 400), whole(chat()))
    running = gateway(model_route(counting, provider, by(all="'tokens'")))
    assert [ask(running).status_code, ask(running).status_code] == [400, 200]
    assert [hits(question) for question in counting.asked(3)] == [["0"], ["0"], ["18"]]


def test_limits_of_models(gateway: Any, counting: Counting, stand_in: Any) -> None:
    provider = stand_in(whole(chat()))
    value = policy(counting, {**by(all="'tokens'"), "type": "tokens"}, by(path="request.path"))
    running = gateway(f"""
        gateways: {{default: {{port: {{port}}}}}}
        llm:
          policies: {{remoteRateLimit: {json.dumps(value)}}}
          models: [{{name: m, provider: openai, params: {{baseUrl: "http://127.0.0.1:{provider.port}/v1", apiKey: k}}}}]
        """)
    assert ask(running).status_code == 200
    told = [(entries(question), hits(question)) for question in counting.asked(3)]
    assert ([{"path": "/v1/chat/completions"}], [None]) in told
    assert ([{"all": "tokens"}], ["0"]) in told
    assert ([{"all": "tokens"}], ["18"]) in told
    refusal = {"key": "x-gw-ratelimited", "value": "true"}, {"key": "x-ratelimit-limit", "value": "10, 10;w=60"}
    counting.react = lambda question: {"overall_code": "OVER_LIMIT", "response_headers_to_add": list(refusal)}
    answer = ask(running)
    assert (answer.status_code, answer.headers["x-gw-ratelimited"], answer.headers["x-ratelimit-limit"]) == (429, "true", "10, 10;w=60")
    assert answer.json()["error"]["message"]
    assert len(provider.seen) == 1


def test_limits_of_tools(gateway: Any, counting: Counting) -> None:
    calls = policy(counting, by(tool="'called'"), condition="request.headers['x-who'] == 'ann'")
    running = gateway(config({"t": SAMPLE}, f"  policies: {{remoteRateLimit: {json.dumps({'conditional': [calls]})}}}\n"))
    raw = Raw(running, **{"x-who": "ann"})
    asked = len(counting.seen)
    assert [entries(question) for question in counting.seen] == [[{"tool": "called"}]] * asked
    assert raw.names("tools/list", "tools")
    assert len(counting.seen) == asked + 1
    counting.react = lambda question: {
        "overall_code": "OVER_LIMIT", "response_headers_to_add": [{"key": "x-gw-ratelimited", "value": "true"}],
    }  # fmt: skip
    answer = raw.post({"id": 9, "method": "tools/list", "params": {}})
    assert (answer.status_code, answer.headers["x-gw-ratelimited"]) == (429, "true")
    fields = {**raw.http.headers, "x-who": "bob"}
    assert httpx.post(running.url + "/mcp", json={"jsonrpc": "2.0", "id": 10, "method": "tools/list"}, headers=fields).status_code == 200


def test_no_condition_or_one_that_fails_counts_nothing(gateway: Any, counting: Counting, backend: StandIn) -> None:
    one = policy(counting, by(a="'one'"), condition="jwt.sub == 'x'")
    two = policy(counting, by(a="'two'"), condition="request.path == '/two'")
    running = gateway(text(backend, {"conditional": [one, two]}))
    for path in ("/one", "/two", "/three"):
        assert httpx.get(running.url + path).status_code == 200
    assert [entries(question) for question in counting.seen] == [[{"a": "two"}]]
