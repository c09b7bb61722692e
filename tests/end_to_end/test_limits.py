"""Rate limits over the wire: exact, shared by workers, told in headers."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections import Counter

import pytest
from tests.end_to_end.asking import ask

pytestmark = pytest.mark.warm

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: limited
  policies:
    localRateLimit:
    - {maxTokens: 200, tokensPerFill: 1, fillInterval: 1h}
    directResponse: {status: 200, body: ok}
"""


def test_64_clients_and_two_workers_get_exactly_what_is_allowed(gateway) -> None:
    running = gateway(CONFIG, workers=2)
    counts: Counter[int] = Counter()
    lock = threading.Lock()

    def client() -> None:
        for _ in range(10):
            status = running.fetch(running.url)[0]
            with lock:
                counts[status] += 1

    threads = [threading.Thread(target=client) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {200: 200, 429: 440}


def test_the_three_headers_and_the_refusal(gateway) -> None:
    running = gateway(CONFIG.replace("200", "2", 1))
    seen = []
    for _ in range(3):
        try:
            answer = urllib.request.urlopen(running.url, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        names = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")
        seen.append((answer.status, answer.read().decode(), *(answer.headers[name] for name in names)))
    assert [item[:4] for item in seen] == [
        (200, "ok", "2", "1"),
        (200, "ok", "2", "0"),
        (429, "rate limit exceeded", "2", "0"),
    ]
    assert all(3600 - 120 <= int(item[4]) <= 3600 for item in seen)


def test_a_limit_survives_a_reload_that_does_not_touch_it(gateway) -> None:
    text = CONFIG.replace("200", "2", 1)
    running = gateway(text)
    assert [running.fetch(running.url)[0] for _ in range(3)] == [200, 200, 429]
    running.reload(text.replace("name: limited", "name: limited\n  hostnames: [127.0.0.1]"))
    assert running.fetch(running.url)[0] == 429


TOKENS = """
gateways:
  default: {port: {port}}
llm:
  policies:
    localRateLimit: [{maxTokens: 20, tokensPerFill: 1, fillInterval: 1h, type: tokens}]
  models:
  - {name: "*", provider: openai, params: {baseUrl: "http://127.0.0.1:%d/v1", apiKey: k}}
"""


def test_llm_tokens_are_charged_when_they_are_known(gateway, sample) -> None:
    import http.client
    import json

    running = gateway(TOKENS % sample("llm_provider", "--api-key", "k"), workers=2)

    def chat(text: str, stream: bool) -> tuple[int, str | None, int]:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]}
        if stream:
            body["stream_options"] = {"include_usage": True}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        raw = answer.read().decode()
        connection.close()
        if answer.status != 200:
            return answer.status, answer.headers["x-ratelimit-remaining"], 0
        lines = [line[6:] for line in raw.splitlines() if line.startswith("data: {")] or [raw]
        used = next(usage for line in reversed(lines) if (usage := json.loads(line).get("usage")))
        return answer.status, answer.headers["x-ratelimit-remaining"], used["total_tokens"]

    left, statuses = 20, []
    for number in range(12):
        status, remaining, used = chat("one two three", stream=number % 2 == 1)
        statuses.append(status)
        if left > 0:
            assert (status, remaining) == (200, str(left))
            left = max(left - used, 0)
        else:
            assert (status, remaining) == (429, "0")
    assert statuses[0] == 200
    assert statuses[-1] == 429


def limited_routes(count: int, tokens: int, entries: int = 1) -> str:
    """Routes with limits of their own."""
    limits = ", ".join(f"{{maxTokens: {tokens + entry}, tokensPerFill: 1, fillInterval: 1h}}" for entry in range(entries))
    routes = "\n".join(
        f"- {{name: r{number}, matches: [{{path: {{exact: /{number}}}}}], "
        f"policies: {{localRateLimit: [{limits}], directResponse: {{status: 200, body: ok}}}}}}"
        for number in range(count)
    )
    return f"gateways: {{default: {{port: {{port}}}}}}\nroutes:\n{routes}\n"


@pytest.mark.cold
def test_13_000_limits_start(gateway) -> None:
    running = gateway(limited_routes(1300, 1, 10))
    assert [running.fetch(f"{running.url}/1299")[0] for _ in range(2)] == [200, 429]


@pytest.mark.cold
def test_4_000_routes_change_their_limits_again_and_again(gateway) -> None:
    running = gateway(limited_routes(4000, 1))
    for turn in range(5):
        assert [running.fetch(f"{running.url}/3999")[0] for _ in range(2 + turn)] == [200] * (1 + turn) + [429]
        running.reload(limited_routes(4000, 2 + turn))


# -- limits of tokens --------------------------------------------------------------------------------------------------

TWO_TOKEN_LIMITS = """
gateways:
  default: {port: {port}}
llm:
  policies:
    cors: {allowOrigins: ["https://x.test"]}
    localRateLimit:
    - {maxTokens: 5, tokensPerFill: 1, fillInterval: 1h, type: tokens}
    - {maxTokens: 100, tokensPerFill: 1, fillInterval: 1h, type: tokens}
  models:
  - {name: "*", provider: openai, params: {baseUrl: "http://127.0.0.1:1/v1", apiKey: k}}
"""
NO_MODEL = """
gateways:
  default: {port: {port}}
routes:
- name: plain
  policies:
    localRateLimit: [{maxTokens: 1, tokensPerFill: 1, fillInterval: 1h, type: tokens}]
    directResponse: {status: 200, body: ok}
"""


def test_token_limits_are_told_beside_cors(gateway) -> None:
    """The tightest of several, whatever other headers the response gets."""
    running = gateway(TWO_TOKEN_LIMITS)
    for headers in ({}, {"origin": "https://x.test"}, {"origin": "https://y.test"}):
        answer = ask(running, "POST", "/v1/chat/completions", headers, '{"model": "m", "messages": []}')
        assert (answer.headers["x-ratelimit-limit"], answer.headers["vary"]) == ("5", "Origin")


@pytest.mark.cold
def test_a_limit_of_tokens_needs_a_model(gateway) -> None:
    running = gateway(NO_MODEL)
    assert "routes[0]: a limit of tokens has no effect: no backend is a model" in running.log()
    for _ in range(3):
        answer = ask(running)
        assert (answer.status, answer.headers["x-ratelimit-limit"]) == (200, None)
