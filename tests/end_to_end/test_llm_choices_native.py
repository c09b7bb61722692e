"""Several choices of one answer (`n`) at providers that speak the client's format and make one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from tests.end_to_end.llm_rig import Rig, openai_client, served, stand_ins
from tests.end_to_end.provider_stand_in import DONE, chat, chunk, event, stream, whole
from tests.end_to_end.test_llm_choices import HI, LIMITED, asked, one_fails, together

VENDORS = ("groq", "ollama", "deepseek", "cohere", "openrouter")
MODELS = "\n".join(
    f'  - {{name: "{vendor}-*", provider: {vendor}, params: {{baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-{vendor}}}}}'
    for vendor in VENDORS
)
CONFIG = f"""
gateways:
  default: {{port: {{port}}}}
llm:
  models:
{MODELS}
  - {{name: "mistral-*", provider: mistral, params: {{baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-m}}}}
  - {{name: twice, provider: groq, params: {{baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: k, model: real}}, overrides: {{n: 2}}}}
  - {{name: hasty, provider: groq, params: {{baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: k}}, streamTimeouts: {{stall: 1s}}}}
"""
CALLS = 'gw_upstream_call_duration_seconds_count{kind="Primary",subtype="Llm"}'
# One choice, with members that only the vendor knows; each call reads 11 tokens and makes 7.
SAID = {**chat(), "x_vendor": {"id": "req_1"}}
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
EVENTS = (
    chunk("hel").replace(b'"object"', b'"x_vendor": 1, "object"'), chunk("lo"), chunk("", "stop"),
    event({"id": "c", "object": "chat.completion.chunk", "model": "real", "choices": [], "usage": USAGE}), DONE,
)  # fmt: skip


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with stand_ins(whole(SAID)) as [provider]:
        text = CONFIG.replace("PROVIDER", str(provider.port))
        with served(tmp_path_factory.mktemp("native"), text) as running:
            yield Rig(running, provider)


@pytest.fixture(scope="module")
def client(rig: Rig) -> openai.OpenAI:
    return openai_client(rig.running)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_vendor_that_has_no_n_is_asked_for_each_choice(rig: Rig, client: openai.OpenAI, vendor: str) -> None:
    before, calls = asked(rig), rig.running.metric(CALLS)
    rig.answers(together(3, whole(SAID)))
    made = client.chat.completions.create(model=f"{vendor}-x", messages=HI, n=3, seed=7, extra_body={"x_own": [1]})
    sent = [one.json for one in rig.provider.seen[before:]]
    assert sent == [{"model": f"{vendor}-x", "messages": HI, "seed": 7, "x_own": [1]}] * 3
    assert {one.headers["authorization"] for one in rig.provider.seen[before:]} == {f"Bearer sk-{vendor}"}
    [choice] = SAID["choices"]
    assert [(one.index, one.message.content) for one in made.choices] == [(at, choice["message"]["content"]) for at in range(3)]
    assert made.usage is not None
    assert (made.usage.prompt_tokens, made.usage.completion_tokens, made.usage.total_tokens) == (33, 21, 54)
    assert made.to_dict()["x_vendor"] == SAID["x_vendor"]
    rig.running.wait_metric(CALLS, calls + 3)


@pytest.mark.parametrize("told", [None, False, True])
def test_streams_come_as_one_with_all_their_members(rig: Rig, told: bool | None) -> None:
    before = asked(rig)
    rig.answers(together(2, stream(*EVENTS)))
    body: dict[str, Any] = {"model": f"groq-{told}", "messages": HI, "n": 2, "stream": True}
    if told is not None:
        body["stream_options"] = {"include_usage": told}
    reply = rig.post(body).text
    assert [one.json["stream_options"]["include_usage"] for one in rig.provider.seen[before:]] == [True, True]
    *lines, end = [line.removeprefix("data: ") for line in reply.splitlines() if line]
    assert end == "[DONE]"
    chunks = [json.loads(line) for line in lines]
    texts = ["", ""]
    for one in chunks:
        for choice in one["choices"]:
            texts[choice["index"]] += choice["delta"].get("content") or ""
    assert texts == ["hello", "hello"]
    assert sum("x_vendor" in one for one in chunks) == 2
    counts = [one["usage"] for one in chunks if one.get("usage")]
    assert counts == ([{"prompt_tokens": 22, "completion_tokens": 14, "total_tokens": 36}] if told else [])
    # The client is charged for all, whether it wants to know or not.
    rig.running.wait_log(f"gen_ai.request.model=groq-{told}")
    [line] = [line for line in rig.running.log().splitlines() if f"gen_ai.request.model=groq-{told} " in line]
    assert "gen_ai.usage.output_tokens=14" in line


@pytest.mark.parametrize("n", [1, None])
def test_requests_for_one_choice_go_on_byte_for_byte(rig: Rig, n: int | None) -> None:
    rig.answers(whole(SAID))
    raw = b'{ "n" : %s, "model":"groq-x",  "messages": [{"role":"user","content":"hi"}] }' % json.dumps(n).encode()
    assert rig.post(raw).json() == SAID
    assert rig.provider.last.body == raw


def test_a_vendor_that_makes_several_is_asked_once(rig: Rig, client: openai.OpenAI) -> None:
    before = asked(rig)
    rig.answers(whole(SAID))
    client.chat.completions.create(model="mistral-x", messages=HI, n=2)
    assert [one.json["n"] for one in rig.provider.seen[before:]] == [2]


def test_what_the_configuration_sets_counts(rig: Rig, client: openai.OpenAI) -> None:
    before = asked(rig)
    rig.answers(whole(SAID))
    assert len(client.chat.completions.create(model="twice", messages=HI).choices) == 2
    assert [one.json for one in rig.provider.seen[before:]] == [{"model": "real", "messages": HI}] * 2


def test_legacy_completions_at_a_vendor_that_has_them(rig: Rig, client: openai.OpenAI) -> None:
    said = {"id": "t", "object": "text_completion", "created": 1, "model": "real", "usage": USAGE,
            "choices": [{"index": 0, "text": "hello", "finish_reason": "stop", "logprobs": None}]}  # fmt: skip
    before = asked(rig)
    rig.answers(whole(said))
    made = client.completions.create(model="ollama-x", prompt="hi", n=2)
    assert [(one.index, one.text) for one in made.choices] == [(0, "hello"), (1, "hello")]
    assert made.usage is not None
    assert made.usage.total_tokens == 36
    assert [(one.path, one.json) for one in rig.provider.seen[before:]] == [
        ("/v1/completions", {"model": "ollama-x", "prompt": "hi"})
    ] * 2


def test_one_refusal_is_the_answer(rig: Rig) -> None:
    rig.answers(one_fails("groq-limited", whole({"error": LIMITED["error"]}, 429, retry_after="7"), whole(SAID)))
    told = rig.post({"model": "groq-limited", "messages": HI, "n": 3})
    assert (told.status_code, told.headers["retry-after"]) == (429, "7")
    assert told.json()["error"]["message"] == "slow down"


@pytest.mark.parametrize("cut", ["cut", "whole"])
def test_a_stream_without_its_end_is_broken(rig: Rig, cut: str) -> None:
    rig.answers(one_fails(f"groq-{cut}", stream(*EVENTS[:2], end=cut), stream(*EVENTS)))
    told = rig.post({"model": f"groq-{cut}", "messages": HI, "n": 2, "stream": True}).text
    *_, last = [line for line in told.splitlines() if line]
    assert "error" in json.loads(last.removeprefix("data: "))


@pytest.mark.parametrize("streams", [False, True])
def test_one_call_that_says_no_more_ends_all_of_them(rig: Rig, streams: bool) -> None:
    """What the request sees of the calls may be silent for other reasons: each is held to `streamTimeouts.stall` itself."""
    silent = stream(EVENTS[0], end="stall") if streams else stream(b'{"id":', end="stall", kind="application/json")
    # The others talk on for longer than a call may be silent.
    others = stream(*EVENTS[:1] * 300, pause=0.1) if streams else whole(SAID)
    rig.answers(one_fails("hasty", silent, others))
    told = rig.post({"model": "hasty", "messages": HI, "n": 2, "stream": streams})
    assert told.status_code == (200 if streams else 503)
    assert "the provider sends nothing any more" in told.text
    assert told.text.count("x_vendor") < 300


@pytest.mark.parametrize("said", [{}, {"choices": []}, {"choices": [1]}, {"error": {"message": "out of order"}}])
def test_a_200_that_is_no_answer_is_an_error(rig: Rig, said: Any) -> None:
    rig.answers(whole(said))
    told = rig.post({"model": "groq-none", "messages": HI, "n": 2})
    assert told.status_code >= 500
    assert told.json()["error"]["message"]


@pytest.mark.parametrize(("n", "why"), [(9, "must be at most 8"), (0, "must be a number"), ("two", "must be a number")])
def test_numbers_that_cannot_be_are_refused(rig: Rig, n: Any, why: str) -> None:
    told = rig.post({"model": "groq-x", "messages": HI, "n": n})
    assert (told.status_code, why in told.json()["error"]["message"]) == (400, True)
