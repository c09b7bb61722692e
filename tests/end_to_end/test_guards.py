"""Prompt guards and enrichment on the wire: an official client, the sample provider, and a webhook that notes its calls."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import openai
import pytest
from tests.end_to_end.provider_stand_in import StandIn, message, whole

pytestmark = pytest.mark.warm

MODELS = """
gateways:
  default: {port: {port}}
llm:
  policies:
    guardrails: SECTION
  models:
  - name: sample
    provider: openai
    params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: sk-sample}
    guardrails: GUARDS
"""
ROUTE = """
gateways:
  default: {port: {port}}
routes:
- backends:
  - ai:
      name: sample
      provider: {openAI: {model: sample}}
      hostOverride: "http://127.0.0.1:BACKEND"
    policies:
      backendAuth: {key: sk-sample}
      ai: POLICY
"""
NOTHING = "{}"
Answer = Callable[[str, Any], tuple[int, Any]]


class Webhook:
    """A guard of the operator's own."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, str], Any]] = []
        self.answer: Answer = lambda path, body: (200, {"action": {}})
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.calls.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                status, document = outer.answer(self.path, body)
                raw = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def entry(self, **more: Any) -> str:
        return json.dumps({"webhook": {"target": {"host": self.host}, **more}})


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    found = Webhook()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def serve(gateway: Callable[..., Any], sample: Callable[..., int]) -> Callable[..., Any]:
    """`serve(guards, section)`: a gateway whose model has these guards."""
    backend = str(sample("llm_provider", "--api-key", "sk-sample"))

    def start(guards: str, section: str = NOTHING, text: str = MODELS) -> Any:
        for word, value in (("BACKEND", backend), ("GUARDS", guards), ("SECTION", section), ("POLICY", guards)):
            text = text.replace(word, value)
        return gateway(text)

    return start


def client_of(running: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{running.url}/v1", api_key="client", max_retries=0)


def ask(running: Any, text: str, **more: Any) -> Any:
    return client_of(running).chat.completions.create(model="sample", messages=[{"role": "user", "content": text}], **more)


def said(running: Any, text: str) -> str:
    return ask(running, text).choices[0].message.content or ""


def streamed(running: Any, text: str) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in ask(running, text, stream=True) if chunk.choices)


def test_the_provider_sees_masks_and_never_what_was_refused(serve: Callable[..., Any]) -> None:
    running = serve(
        "{request: [{regex: {builtins: [Email, CreditCard]}}, {regex: {action: Reject, matches: [{pattern: '(?i)blue heron'}]},"
        " rejection: {status: 422, body: no herons, headers: {set: {content-type: text/plain}}}}]}",
        "{request: [{regex: {matches: [{pattern: 'project kestrel', name: names}]}}]}",
    )
    assert said(running, "mail a@b.co on project kestrel") == "You said: mail <EMAIL_ADDRESS> on <masked>"
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        ask(running, "a Blue Heron")
    assert refused.value.response.text == "no herons"
    assert refused.value.response.headers["content-type"] == "text/plain"
    running.wait_metric('gw_guardrail_checks_total{phase="Request",action="Reject",guard="regex"}', 1)
    running.wait_log("gw.ai.guardrail")


def test_replies_are_masked_and_refused(serve: Callable[..., Any]) -> None:
    running = serve(
        "{response: [{regex: {builtins: [email]}}, {regex: {action: reject, matches: [{pattern: heron}]}}], streaming: Disabled}"
    )
    assert said(running, "a@b.co") == "You said: <EMAIL_ADDRESS>"
    with pytest.raises(openai.PermissionDeniedError) as refused:
        ask(running, "heron")
    assert refused.value.code == "guardrail_intervention"
    assert "The request was rejected due to inappropriate content: " in str(refused.value)
    # Streams are another matter, until they are switched on.
    assert streamed(running, "a heron at a@b.co") == "You said: a heron at a@b.co"


def test_streams_are_blocked_and_masked_where_that_is_wanted(serve: Callable[..., Any]) -> None:
    running = serve(
        "{response: [{regex: {builtins: [email]}}, {regex: {action: reject, matches: [{pattern: blue heron}]}}],"
        " streaming: {masks: Apply}}"
    )
    assert streamed(running, "write to some one at a@b.co today") == "You said: write to some one at <EMAIL_ADDRESS> today"
    body = {"model": "sample", "stream": True, "messages": [{"role": "user", "content": "a blue heron"}]}
    text = httpx.post(f"{running.url}/v1/chat/completions", json=body, timeout=60).text
    assert "heron" not in text
    assert '"type":"guardrail_blocked"' in text
    assert "[DONE]" not in text
    # The connection and the gateway go on.
    assert said(running, "hello") == "You said: hello"


def test_a_webhook_of_both_phases(serve: Callable[..., Any], webhook: Webhook) -> None:
    def answer(path: str, body: Any) -> tuple[int, Any]:
        if path == "/request":
            messages = [{**one, "content": one["content"].replace("secret", "***")} for one in body["body"]["messages"]]
            return 200, {"action": {"body": {"messages": messages}}}
        choices = body["body"]["choices"]
        if "bad" in choices[0]["message"]["content"]:
            return 200, {"action": {"body": "blocked by desk 7", "status_code": 451}}
        return 200, {"action": {"reason": "fine"}}

    webhook.answer = answer
    headers = {"x-agent": 'request.headers["user-agent"]', "x-key": 'request.headers["authorization"]', "x-none": "jwt.sub"}
    entry = webhook.entry(headers=headers)
    running = serve(f"{{request: [{entry}], response: [{entry}], streaming: true}}")
    assert said(running, "the secret word") == "You said: the *** word"
    (first, asked, body), (second, told, reply) = webhook.calls
    assert (first, second) == ("/request", "/response")
    assert body == {"body": {"messages": [{"role": "user", "content": "the secret word"}]}}
    assert reply == {"body": {"choices": [{"message": {"role": "assistant", "content": "You said: the *** word"}}]}}
    for seen in (asked, told):
        # The client's own, never the provider's credential.
        assert seen["x-key"] == "Bearer client"
        assert seen["x-agent"].startswith("OpenAI/")
        assert "x-none" not in seen
    with pytest.raises(openai.APIStatusError) as refused:
        ask(running, "bad")
    assert (refused.value.status_code, refused.value.response.text) == (451, "blocked by desk 7")
    webhook.calls.clear()
    assert streamed(running, "a secret stream of words") == "You said: a *** stream of words"
    assert webhook.calls[-1][2]["body"]["choices"][0]["message"]["content"] == "You said: a *** stream of words"
    body = {"model": "sample", "stream": True, "messages": [{"role": "user", "content": "bad"}]}
    text = httpx.post(f"{running.url}/v1/chat/completions", json=body, timeout=60).text
    assert '"message":"blocked by desk 7"' in text
    assert "You" not in text


def test_a_webhook_that_is_gone(serve: Callable[..., Any], webhook: Webhook) -> None:
    webhook.answer = lambda path, body: (500, {"action": {}})
    running = serve(f"{{request: [{webhook.entry()}]}}")
    with pytest.raises(openai.APIStatusError) as failed:
        ask(running, "x")
    assert failed.value.status_code == 503
    assert failed.value.code == "guardrail_failed"
    assert "failed to process LLM request: prompt guard failed: " in str(failed.value)
    passing = serve(f"{{response: [{webhook.entry(failureMode='failOpen')}], streaming: true}}")
    assert said(passing, "x") == "You said: x"
    assert streamed(passing, "x") == "You said: x"
    passing.wait_metric('gw_guardrail_checks_total{phase="Response",action="FailOpen",guard="webhook"}', 2)


def test_enrichment_and_guards_of_an_ai_backend(serve: Callable[..., Any], webhook: Webhook) -> None:
    policy = (
        "{prompts: {prepend: [{role: system, content: Be brief}], append: [{role: user, content: write to a@b.co}]},"
        f" promptGuard: {{request: [{{regex: {{builtins: [email]}}}}, {webhook.entry()}]}}}}"
    )
    running = serve(policy, text=ROUTE)
    assert said(running, "hello") == "You said: write to <EMAIL_ADDRESS>"
    told = webhook.calls[0][2]["body"]["messages"]
    assert [(one["role"], one["content"]) for one in told] == [
        ("system", "Be brief"), ("user", "hello"), ("user", "write to <EMAIL_ADDRESS>"),
    ]  # fmt: skip


def test_a_client_that_leaves_while_a_guard_thinks(serve: Callable[..., Any], webhook: Webhook) -> None:
    wait = threading.Event()

    def answer(path: str, body: Any) -> tuple[int, Any]:
        wait.wait(60)
        return 200, {"action": {}}

    webhook.answer = answer
    running = serve(f"{{response: [{webhook.entry()}]}}")
    body = {"model": "sample", "messages": [{"role": "user", "content": "x"}]}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{running.url}/v1/chat/completions", json=body, timeout=1.0)
    wait.set()
    webhook.answer = lambda path, body: (200, {"action": {}})
    assert said(running, "after") == "You said: after"


GROUPS = """
gateways:
  default: {port: {port}}
routes:
- backends:
  - ai:
      groups:
      - providers:
        - {name: one, provider: {openAI: {model: first}}, hostOverride: "127.0.0.1:ONE"}
      - providers:
        - {name: two, provider: {anthropic: {model: second}}, hostOverride: "127.0.0.1:TWO"}
    policies: {ai: POLICY}
"""


@pytest.mark.parametrize("masked", [False, True])
def test_guards_are_asked_once_however_many_providers_are_tried(
    gateway: Callable[..., Any], webhook: Webhook, masked: bool
) -> None:
    one, two = StandIn(whole({"error": {"message": "no"}}, 503)), StandIn(whole(message("hello")))

    def mask(path: str, body: Any) -> tuple[int, Any]:
        return 200, {"action": {"body": {"messages": [{**turn, "content": "masked"} for turn in body["body"]["messages"]]}}}

    if masked:
        webhook.answer = mask
    policy = json.dumps({
        "promptGuard": {"request": [json.loads(webhook.entry()), {"regex": {"builtins": ["email"]}}]},
        "prompts": {"prepend": [{"role": "system", "content": "be kind"}]},
    })  # fmt: skip
    text = GROUPS.replace("ONE", str(one.port)).replace("TWO", str(two.port)).replace("POLICY", policy)
    running = gateway(text)
    try:
        assert said(running, "mail a@b.example") == "hello"
        assert len(webhook.calls) == 1
        text = "masked" if masked else "mail <EMAIL_ADDRESS>"
        # Both providers got what the guards left, each in its format.
        assert [one.last.json["model"], two.last.json["model"]] == ["first", "second"]
        assert one.last.json["messages"][-1]["content"] == text
        assert two.last.json["messages"][-1]["content"] == [{"type": "text", "text": text}]
        checks = 'gw_guardrail_checks_total{phase="Request"'
        running.wait_metric(checks, 2)
        # Another request is another question.
        said(running, "mail a@b.example")
        assert len(webhook.calls) == 2
    finally:
        one.close()
        two.close()


# -- paths that a provider may take for another one ---------------------------------------------------------------------

CHAT = {"model": "sample", "messages": [{"role": "user", "content": "about a heron"}]}
# Path, a body that says what the guard refuses in the format of the path, and whether the provider knows the path, too.
SPELLINGS: list[tuple[str, dict[str, Any], bool]] = [
    ("/v1/chat/completions", CHAT, True),
    ("/chat/completions", CHAT, True),
    ("/responses", {"model": "sample", "input": "about a heron"}, False),
    ("/messages", {**CHAT, "max_tokens": 9}, True),
    ("/chat//completions", CHAT, False),
    ("/v1/../chat/completions", CHAT, True),
    ("/Chat/Completions/", CHAT, False),
    ("/chat/%63ompletions", CHAT, True),
]
UNKNOWN = ["/v1/completions", "/completions", "/v1/threads/runs", "/v1/audio/speech", "/openai/deployments/m/chat/complete"]
NO_HERONS = "{request: [{regex: {action: Reject, matches: [{pattern: heron}]}, rejection: {status: 422, body: no herons}}]}"


def put(running: Any, path: str, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{running.url}{path}", json=body, timeout=30)


@pytest.mark.parametrize("text", [MODELS, ROUTE])
def test_guards_run_whatever_the_path(serve: Callable[..., Any], text: str) -> None:
    running = serve(NO_HERONS if text is MODELS else f"{{promptGuard: {NO_HERONS}}}", text=text)
    for path, body, known in SPELLINGS:
        answer = put(running, path, body)
        assert (answer.status_code, answer.text) == (422, "no herons"), path
        harmless = json.loads(json.dumps(body).replace("heron", "crane"))
        assert put(running, path, harmless).status_code == (200 if known else 404), path
    for path in UNKNOWN:
        answer = put(running, path, {"model": "sample", "prompt": "about a crane"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "unknown_path"), path
    assert httpx.get(f"{running.url}/v1/models").json()["data"][0]["id"] == "sample"


def test_a_configured_route_takes_paths_that_guards_cannot_read(serve: Callable[..., Any]) -> None:
    policy = f"{{promptGuard: {NO_HERONS}, routes: {{'*': passthrough}}}}"
    running = serve(policy, text=ROUTE)
    assert put(running, "/v1/completions", {"model": "sample", "prompt": "a heron"}).status_code == 404    # the provider's
    assert put(running, "/chat/completions", CHAT).status_code == 422


def test_a_base_url_that_completes_a_path(serve: Callable[..., Any]) -> None:
    running = serve(NO_HERONS, text=MODELS.replace("/v1,", "/v1/chat,").replace('/v1"', '/v1/chat"'))
    answer = put(running, "/completions", CHAT)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "unknown_path")


def test_added_prompts_reach_every_spelling(serve: Callable[..., Any]) -> None:
    running = serve("{prompts: {append: [{role: user, content: in one word}]}}", text=ROUTE)
    for path in ("/v1/chat/completions", "/chat/completions"):
        assert put(running, path, CHAT).json()["choices"][0]["message"]["content"] == "You said: in one word", path
