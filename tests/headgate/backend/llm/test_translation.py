"""Bodies on their way through a translation: what cannot be read is told to who sent it."""

from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.backend.llm.translation import Translation
from headgate.dialect.llm import pairs
from headgate_engine.context.request import Reply

PROMPT = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def translation() -> Translation:
    pair = pairs.converter("messages", "completions")
    assert pair is not None
    return Translation(pair, "openai")


def asked(translation: Translation, body: bytes) -> Any:
    call: Any = SimpleNamespace(model="m-1", requested=None, asked=None)
    head: Any = {}
    return translation.request(body, call, head), call


def test_a_body_goes_over(translation: Translation) -> None:
    (body, _suffix), call = asked(translation, json.dumps(PROMPT).encode())
    assert json.loads(body)["model"] == "m-1"
    reply = {"id": "x", "object": "chat.completion", "model": "m-1", "usage": {"prompt_tokens": 3, "completion_tokens": 2},
             "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "é"}}]}  # fmt: skip
    status, told, usage, model = translation.reply(json.dumps(reply).encode(), call.translation_state, {})
    assert (status, json.loads(told)["content"][0]["text"]) == (200, "é")
    assert usage is not None
    assert (usage[:2], model) == ((3, 2), "m-1")


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff", b'{"a":' * 100_000, json.dumps({**PROMPT, "metadata": {"user_id": 1}}).encode()[:-1], b'{"temperature": NaN}'],
    ids=["cut", "no UTF-8", "deep", "open", "no number"],
)  # fmt: skip
def test_a_request_that_is_no_json_is_the_clients_fault(translation: Translation, body: bytes) -> None:
    found, _call = asked(translation, body)
    assert isinstance(found, Reply)
    assert found.status == 400
    assert json.loads(found.body)["type"] == "error"


def test_a_long_answer_is_worked_on_in_another_thread(translation: Translation) -> None:
    threads: list[threading.Thread] = []

    def work(body: bytes) -> Any:
        threads.append(threading.current_thread())
        return 200, body, None, "m"

    assert asyncio.run(translation.beside(work, b"x")) == (200, b"x", None, "m")
    assert threads != [threading.main_thread()]


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b"[]", b'{"choices": 1}'])
def test_an_answer_that_is_none_is_the_providers_fault(translation: Translation, body: bytes) -> None:
    _, call = asked(translation, json.dumps(PROMPT).encode())
    status, told, usage, _ = translation.reply(body, call.translation_state, {})
    assert (status, usage) == (502, None)
    assert json.loads(told)["error"]["message"].startswith("failed to process LLM response")
