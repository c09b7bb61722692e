"""What clients see when providers fail: before the first byte another one answers, after it the truth is told."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest
from tests.end_to_end.conftest import free_port
from tests.end_to_end.provider_stand_in import (
    DONE,
    Answer,
    chat,
    chunk,
    event,
    message_events,
    reset,
    silence,
    stream,
    whole,
)

pytestmark = pytest.mark.warm

MESSAGES: list[Any] = [{"role": "user", "content": "hi"}]
ERROR = {"error": {"message": "no", "type": "server_error", "param": None, "code": None}}
GOOD = whole(chat("from the second"))
GOOD_STREAM = stream(chunk("from "), chunk("the second"), chunk(finish="stop"), DONE)


GROUPS = """
gateways:
  default: {port: {port}}
routes:
- gateways: [default]
  backends:
  - ai:
      groups:
      - providers:
        - name: first
          hostOverride: 127.0.0.1:FIRST
          provider: {openAI: {model: one}}
          streamTimeouts: {firstEvent: PATIENCE, stall: PATIENCE}
          policies: {http: {requestTimeout: PATIENCE}, backendAuth: {key: key-one}}
      - providers:
        - name: second
          hostOverride: 127.0.0.1:SECOND
          provider: {openAI: {model: two}}
          policies: {backendAuth: {key: key-two}}
"""


@pytest.fixture
def pair(gateway, stand_in):
    """`pair(*answers, fault="", second=...)`: a gateway whose first provider gives these, and whose second one works. The
    first has a minute for each answer, unless it is the fault that it does not come.
    """

    def start(*answers: Answer, fault: str = "", second: tuple[Answer, ...] = (GOOD,)):
        one, two = stand_in(*answers), stand_in(*second)
        text = GROUPS.replace("FIRST", str(one.port)).replace("SECOND", str(two.port))
        return gateway(text.replace("PATIENCE", "1s" if fault in SILENT else "60s")), one, two

    return start


def client(running: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{running.url}/v1", api_key="x", max_retries=0, timeout=30)


def ask(running: Any) -> str:
    answer = client(running).chat.completions.create(model="m", messages=MESSAGES)
    return answer.choices[0].message.content or ""


def ask_stream(running: Any) -> str:
    chunks = client(running).chat.completions.create(model="m", messages=MESSAGES, stream=True)
    return "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)


SILENT = ("silence", "no event", "only comments", "stall")
FAULTS: dict[str, Answer] = {
    "429": whole(ERROR, 429),
    "429 with retry-after": whole(ERROR, 429, retry_after="30"),
    "500": whole(ERROR, 500),
    "503": whole(ERROR, 503),
    "529": whole(ERROR, 529),
    "reset": reset,
    "silence": silence,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_another_provider_answers_within_the_request(pair, fault: str) -> None:
    running, one, two = pair(FAULTS[fault], fault=fault)
    assert ask(running) == "from the second"
    assert (len(one.seen), len(two.seen)) == (1, 1)
    assert one.last.json == {"model": "one", "messages": MESSAGES}
    assert two.last.json == {"model": "two", "messages": MESSAGES}
    assert (one.last.headers["authorization"], two.last.headers["authorization"]) == (
        "Bearer key-one", "Bearer key-two",
    )  # fmt: skip
    assert two.last.headers["x-retry-attempt"] == "1"
    running.wait_log("retry.attempt=1")
    assert "gen_ai.request.model=two" in running.log()


STREAM_FAULTS: dict[str, Answer] = {
    **{name: FAULTS[name] for name in ("429", "reset")},
    "no event": stream(end="stall"),
    "a cut before the first event": stream(b"data: {\"id\"", end="cut"),
    "an empty stream": stream(),
    "an error as first event": stream(event(ERROR)),
    "no JSON": stream(b"data: {broken\n\n"),
    "only comments": stream(b": wait\n\n", end="stall"),
}


@pytest.mark.parametrize("fault", STREAM_FAULTS)
def test_a_stream_that_fails_before_its_first_event_is_not_seen(pair, fault: str) -> None:
    running, one, _ = pair(STREAM_FAULTS[fault], fault=fault, second=(GOOD_STREAM,))
    assert ask_stream(running) == "from the second"
    assert len(one.seen) == 1


def raw_stream(running: Any, path: str, body: dict[str, Any]) -> bytes:
    status, text = running.fetch(f"{running.url}{path}", "POST", data=json.dumps({**body, "stream": True}).encode())
    assert status == 200
    return text.encode()


LATE_FAULTS: dict[str, Answer] = {
    "cut": stream(chunk("a"), end="cut"),
    "cut within an event": stream(chunk("a"), chunk("b")[:20], end="cut"),
    "stall": stream(chunk("a"), end="stall"),
    "no end": stream(chunk("a")),
    "half an event": stream(chunk("a"), chunk("b")[:20]),
    "no JSON": stream(chunk("a"), b"data: {broken\n\n", chunk("b"), DONE),
}


@pytest.mark.parametrize("fault", LATE_FAULTS)
def test_a_stream_that_breaks_later_ends_in_one_error(pair, fault: str) -> None:
    running, _, two = pair(LATE_FAULTS[fault], fault=fault)
    text = raw_stream(running, "/v1/chat/completions", {"model": "m", "messages": MESSAGES})
    events = [line[6:] for line in text.decode().split("\n") if line.startswith("data: ")]
    assert json.loads(events[0])["choices"][0]["delta"]["content"] == "a"
    assert json.loads(events[-1])["error"]["type"] == "api_error"
    assert len(events) == 2, events
    assert two.seen == []
    with pytest.raises(openai.APIError):
        ask_stream(running)
    running.wait_log("error=")


def test_a_provider_that_forgets_the_last_event(pair) -> None:
    running, _, _ = pair(stream(chunk("a"), chunk(finish="stop")))
    text = raw_stream(running, "/v1/chat/completions", {"model": "m", "messages": MESSAGES})
    assert text.endswith(DONE)
    assert text.count(b"[DONE]") == 1


def test_nothing_follows_the_last_event(pair) -> None:
    running, _, _ = pair(stream(chunk("a"), chunk(finish="stop"), DONE, chunk("b"), DONE))
    text = raw_stream(running, "/v1/chat/completions", {"model": "m", "messages": MESSAGES})
    assert text.endswith(DONE)
    assert text.count(b"data:") == 3


def test_an_error_of_the_provider_within_a_stream_is_the_end(pair) -> None:
    running, _, _ = pair(stream(chunk("a"), event(ERROR), DONE))
    text = raw_stream(running, "/v1/chat/completions", {"model": "m", "messages": MESSAGES})
    assert text.endswith(event(ERROR))


def test_anthropic_s_client_is_told_in_its_format(gateway, stand_in) -> None:
    provider = stand_in(stream(*message_events("hel")[:4], end="cut"))
    config = f"""
gateways:
  default: {{port: {{port}}}}
llm:
  models:
  - {{name: c, provider: anthropic, params: {{baseUrl: "http://127.0.0.1:{provider.port}"}}}}
"""
    running = gateway(config)
    found = anthropic.Anthropic(base_url=running.url, api_key="x", max_retries=0)
    text: list[str] = []

    def read() -> None:
        with found.messages.stream(model="c", max_tokens=9, messages=MESSAGES) as told:
            text.extend(told.text_stream)

    with pytest.raises(anthropic.APIStatusError) as error:
        read()
    assert text == ["hel"]
    assert error.value.body == {
        "type": "error",
        "error": {"type": "api_error", "message": error.value.body["error"]["message"]},  # type: ignore[index]
    }


def test_both_failing_gives_the_last_answer(pair) -> None:
    running, one, two = pair(whole(ERROR, 503), second=(whole(ERROR, 429),))
    with pytest.raises(openai.RateLimitError):
        ask(running)
    assert (len(one.seen), len(two.seen)) == (1, 1)


def test_what_is_the_client_s_fault_is_not_tried_again(pair) -> None:
    running, _, two = pair(whole(ERROR, 400))
    with pytest.raises(openai.BadRequestError):
        ask(running)
    assert two.seen == []


def test_a_provider_that_says_when_to_come_back_is_left_alone(pair) -> None:
    running, one, two = pair(whole(ERROR, 429, retry_after="60"))
    assert [ask(running) for _ in range(3)] == ["from the second"] * 3
    assert (len(one.seen), len(two.seen)) == (1, 3)


def test_a_provider_that_keeps_failing_is_left_alone(pair) -> None:
    running, one, two = pair(whole(ERROR, 500))
    assert [ask(running) for _ in range(5)] == ["from the second"] * 5
    assert (len(one.seen), len(two.seen)) == (3, 5)


@pytest.mark.http1(reason="httpx sends no RST_STREAM when a response is closed")
def test_a_client_that_leaves_stops_the_provider(pair) -> None:
    running, one, _ = pair(stream(chunk("a"), end="stall"))
    found = client(running).chat.completions.create(model="m", messages=MESSAGES, stream=True)
    assert next(iter(found)).choices[0].delta.content == "a"
    found.close()
    assert one.gone.wait(40)


VIRTUAL = """
gateways:
  default: {port: {port}}
llm:
  providers:
  - name: one
    provider: openai
    params: {baseUrl: "http://127.0.0.1:FIRST/v1", apiKey: key-one}
    defaults: {defaults: {seed: 1}, overrides: {user: provider}}
  - name: two
    provider: openAI
    params: {baseUrl: "http://127.0.0.1:SECOND/v1", apiKey: key-two}
  models:
  - {name: real-one, provider: {reference: one}, overrides: {user: model}}
  - {name: "real-two*", provider: {reference: two}, visibility: internal}
  - {name: "acme/*", provider: {reference: one}, transformation: {model: 'llmRequest.model.stripPrefix("acme/")'}}
  virtualModels:
  - name: safe
    routing: {failover: {targets: [{model: real-two-x, priority: 2}, {model: real-one, priority: 1}]}}
  - name: split
    routing: {weighted: {targets: [{model: real-one, weight: 0}, {model: real-two-y, weight: 3}]}}
  - name: chosen
    routing:
      conditional:
        targets:
        - {model: real-two-long, when: "llmRequest.messages.size() > 1"}
        - {model: real-one, when: 'request.headers["x-plain"] == "yes"'}
"""


@pytest.fixture
def virtual(gateway, stand_in):
    def start(*answers: Answer):
        one, two = stand_in(*answers), stand_in(GOOD)
        return gateway(VIRTUAL.replace("FIRST", str(one.port)).replace("SECOND", str(two.port))), one, two

    return start


def test_models_inherit_from_their_provider(virtual) -> None:
    running, one, _ = virtual(whole(chat("one")))
    found = client(running).chat.completions.create(model="real-one", messages=MESSAGES)
    assert found.choices[0].message.content == "one"
    assert one.last.json == {"model": "real-one", "messages": MESSAGES, "seed": 1, "user": "model"}
    client(running).chat.completions.create(model="acme/big", messages=MESSAGES)
    assert one.last.json["model"] == "big"


def test_a_virtual_model_fails_over(virtual) -> None:
    running, one, two = virtual(whole(ERROR, 503))
    answer = client(running).chat.completions.create(model="safe", messages=MESSAGES)
    assert answer.choices[0].message.content == "from the second"
    assert one.last.json["model"] == "real-one"
    assert two.last.json["model"] == "real-two-x"


def test_a_virtual_model_splits_by_weight(virtual) -> None:
    running, one, two = virtual(GOOD)
    for _ in range(5):
        client(running).chat.completions.create(model="split", messages=MESSAGES)
    assert (len(one.seen), len(two.seen)) == (0, 5)
    assert two.last.json["model"] == "real-two-y"


def test_a_virtual_model_asks_conditions(virtual) -> None:
    running, one, two = virtual(GOOD)
    # A long body is read beside the loop first.
    for turns in (MESSAGES * 2, MESSAGES * 10_000):
        client(running).chat.completions.create(model="chosen", messages=turns)
        assert (two.last.json["model"], len(two.last.json["messages"])) == ("real-two-long", len(turns))
    client(running).chat.completions.create(model="chosen", messages=MESSAGES, extra_headers={"x-plain": "yes"})
    assert one.last.json["model"] == "real-one"
    with pytest.raises(openai.BadRequestError) as found:
        client(running).chat.completions.create(model="chosen", messages=MESSAGES)
    assert found.value.code == "virtual_model_no_matching_target"


def test_internal_models_are_neither_listed_nor_served(virtual) -> None:
    running, _, _ = virtual(GOOD)
    assert [one.id for one in client(running).models.list()] == ["real-one", "acme/*", "safe", "split", "chosen"]
    with pytest.raises(openai.NotFoundError):
        client(running).chat.completions.create(model="real-two-x", messages=MESSAGES)


def test_a_route_s_own_retries_come_with_its_pause(gateway, stand_in) -> None:
    provider = stand_in(whole(ERROR, 500), whole(ERROR, 500), whole(chat("at last")))
    text = f"""
gateways:
  default: {{port: {{port}}}}
routes:
- gateways: [default]
  policies: {{retry: {{attempts: 2, backoff: 50ms, codes: [500]}}}}
  backends:
  - ai: {{name: it, hostOverride: "127.0.0.1:{provider.port}", provider: {{openAI: {{model: real}}}}}}
"""
    running = gateway(text)
    assert ask(running) == "at last"
    assert [one.json["model"] for one in provider.seen] == ["real"] * 3


def test_retries_are_a_share_of_the_requests(gateway, stand_in) -> None:
    provider = stand_in(whole(ERROR, 503))
    running = gateway(f"""
    gateways:
      default: {{port: {{port}}}}
    routes:
    - policies: {{retry: {{attempts: 3, codes: [503], budget: {{percent: 50, minPerSecond: 0}}}}}}
      backends:
      - ai: {{name: it, provider: {{openAI: {{}}}}, hostOverride: "127.0.0.1:{provider.port}"}}
    """)
    for _ in range(8):
        with pytest.raises(openai.InternalServerError):
            ask(running)
    # Every second request may be tried once more, instead of each three times.
    assert 8 < len(provider.seen) <= 12
    running.wait_log("gw.retry.refused=budget")


def test_a_provider_that_cannot_be_reached(gateway, stand_in) -> None:
    two = stand_in(GOOD)
    text = GROUPS.replace("FIRST", str(free_port())).replace("SECOND", str(two.port)).replace("PATIENCE", "60s")
    assert ask(gateway(text)) == "from the second"
