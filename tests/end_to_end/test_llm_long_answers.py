"""Answers above 2 MiB: passed on, translated and guarded, up to a bound; what is longer is a clear error of the client's format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors, types
from tests.end_to_end.llm_formats import CHAT, RESPONSE
from tests.end_to_end.llm_rig import Rig, anthropic_client, openai_client, served, stand_ins
from tests.end_to_end.llm_translated_rig import CONVERSE, GEMINI
from tests.end_to_end.provider_stand_in import Answer, message, stream, whole

MIB = 1 << 20
CONFIG = """
gateways:
  default: {port: {port}}
frontendPolicies: {http: {maxModelResponseSize: 8Mi}}
llm:
  providers:
  - {name: c, provider: {custom: {formats: [{type: completions}]}}, params: {baseUrl: "http://127.0.0.1:BACKEND/v1"}}
  - {name: m, provider: {custom: {formats: [{type: messages}]}}, params: {baseUrl: "http://127.0.0.1:BACKEND/v1"}}
  - {name: r, provider: {custom: {formats: [{type: responses}]}}, params: {baseUrl: "http://127.0.0.1:BACKEND/v1"}}
  - {name: g, provider: {custom: {formats: [{type: generateContent}]}}, params: {baseUrl: "http://127.0.0.1:BACKEND"}}
  models:
  - {name: completions, provider: {reference: c}}
  - {name: messages, provider: {reference: m}}
  - {name: responses, provider: {reference: r}}
  - {name: gemini, provider: {reference: g}}
  - {name: converse, provider: bedrock, params: {baseUrl: "http://127.0.0.1:BACKEND", apiKey: bedrock-key}}
  - {name: completions-guarded, provider: {reference: c}, guardrails: &guards {response: [{regex: {rules: [{pattern: FORBIDDEN, name: WORD}], action: mask}}]}}
  - {name: messages-guarded, provider: {reference: m}, guardrails: *guards}
"""
LONG, LONGER = "tell " * (5 * MIB // 5), "tell " * (9 * MIB // 5)
PROVIDERS = ("completions", "messages", "responses", "gemini", "converse")
TOO_LARGE = "larger than `frontendPolicies.http.maxModelResponseSize`"


def said(provider: str, text: str) -> Any:
    """What a provider of the format answers with a text."""
    if provider == "completions":
        return {**CHAT, "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
    if provider == "messages":
        return message(text)
    if provider == "responses":
        item = {**RESPONSE["output"][0], "content": [{"type": "output_text", "text": text, "annotations": []}]}
        return {**RESPONSE, "output": [item]}
    if provider == "gemini":
        candidate = {**GEMINI["candidates"][0], "content": {"role": "model", "parts": [{"text": text}]}}  # type: ignore[index]
        return {**GEMINI, "candidates": [candidate]}
    return {**CONVERSE, "output": {"message": {"role": "assistant", "content": [{"text": text}]}}}


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with (
        stand_ins(whole(CHAT)) as [one],
        served(tmp_path_factory.mktemp("long"), CONFIG.replace("BACKEND", str(one.port))) as running,
    ):
        yield Rig(running, one)


def google(rig: Rig) -> genai.Client:
    return genai.Client(
        api_key="the client's own", http_options=types.HttpOptions(base_url=rig.running.url, timeout=60_000)
    )


def asked(rig: Rig, client: str, model: str) -> str:
    """Ask with the vendor's client; return the text."""
    if client == "completions":
        answer = openai_client(rig.running).chat.completions.create(
            model=model, messages=[{"role": "user", "content": "hi"}]
        )
        return answer.choices[0].message.content or ""
    if client == "messages":
        told = anthropic_client(rig.running).messages.create(
            model=model, max_tokens=9, messages=[{"role": "user", "content": "hi"}]
        )
        return told.content[0].text
    if client == "responses":
        return openai_client(rig.running).responses.create(model=model, input="hi").output_text
    with google(rig) as talk:
        return talk.models.generate_content(model=model, contents="hi").text or ""


CLIENTS = ("completions", "messages", "responses", "gemini")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_long_answers_arrive_at_every_client(rig: Rig, client: str, provider: str) -> None:
    rig.answers(whole(said(provider, LONG)))
    assert asked(rig, client, provider) == LONG


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("provider", ["completions", "messages"])
def test_long_answers_are_guarded_to_their_end(rig: Rig, client: str, provider: str) -> None:
    rig.answers(whole(said(provider, LONG + "FORBIDDEN")))
    assert asked(rig, client, f"{provider}-guarded") == LONG + "<masked>"


def chunked(body: Any) -> Answer:
    """The same answer without its length."""
    raw = json.dumps(body).encode()
    return stream(*(raw[at : at + MIB] for at in range(0, len(raw), MIB)), kind="application/json")


KEPT = [(client, model) for client in CLIENTS for model in ("completions", "messages", "messages-guarded") if client != model]


@pytest.mark.parametrize("length", ["told", "not told"])
@pytest.mark.parametrize(("client", "model"), KEPT)
def test_what_is_longer_than_the_bound_is_an_error_of_the_client_s_format(
    rig: Rig, client: str, model: str, length: str
) -> None:
    provider = model.split("-")[0]
    body = said(provider, LONGER)
    rig.answers(whole(body) if length == "told" else chunked(body))
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError, errors.APIError)) as found:
        asked(rig, client, model)
    assert TOO_LARGE in str(found.value)
    assert (found.value.code if isinstance(found.value, errors.APIError) else found.value.status_code) == 502
    body = found.value.details if isinstance(found.value, errors.APIError) else found.value.body
    if client == "gemini":
        assert body["error"]["status"] == "INTERNAL"  # type: ignore[index]
    elif client == "messages":
        assert body["error"]["type"] == "api_error"  # type: ignore[index]
    else:
        assert body["message"]  # type: ignore[index]


def test_native_answers_have_no_bound(rig: Rig) -> None:
    rig.answers(whole(said("completions", LONGER * 2)))
    assert asked(rig, "completions", "completions") == LONGER * 2


def test_a_coded_answer_counts_as_it_is_unpacked(rig: Rig) -> None:
    packed = gzip.compress(json.dumps(said("completions", LONG)).encode())
    rig.answers(whole(packed, content_encoding="gzip"))
    assert asked(rig, "messages", "completions") == LONG
    rig.answers(whole(gzip.compress(json.dumps(said("completions", LONGER)).encode()), content_encoding="gzip"))
    with pytest.raises(anthropic.InternalServerError, match="maxModelResponseSize"):
        asked(rig, "messages", "completions")


def test_many_long_answers_at_once_take_bounded_memory(rig: Rig) -> None:
    """A worker keeps 64 MiB of them, and works on two at a time; others are told to come again."""
    rig.answers(whole(said("completions", LONG)))

    def one(_: int) -> str:
        try:
            return "whole" if asked(rig, "messages", "completions") == LONG else "other"
        except anthropic.InternalServerError as error:
            return str(error)

    with ThreadPoolExecutor(24) as pool:
        found = list(pool.map(one, range(48)))
    assert all(text == "whole" or "too many long answers" in text for text in found)
    assert "whole" in found
    for pid in rig.running.worker_pids():
        status = Path(f"/proc/{pid}/status").read_text()
        peak = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))
        assert peak < 320 * MIB
    assert asked(rig, "messages", "completions") == LONG       # all of it was given back
