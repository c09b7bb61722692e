"""Prompts and answers in the request log: only where they are wanted, behind guards, and never too long."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.page_rig import ask_admin, call, samples
from tests.end_to_end.running import Pool

JSON = {"content-type": "application/json"}
DATABASE = "database: {url: 'sqlite://data.db'}"
CONFIG = """
gateways: {default: {port: {port}}}
frontendPolicies: {accessLog: {database: {llm: LEVEL}}}
llm:
  gateways: default
  models:
  - {name: plain, provider: openai, params: {baseUrl: "http://127.0.0.1:LLM/v1", apiKey: never-shown, model: sample}}
  - name: guarded
    provider: openai
    params: {baseUrl: "http://127.0.0.1:LLM/v1", apiKey: never-shown, model: sample}
    guardrails:
      request:
      - regex: {action: mask, rules: [{builtin: email}]}
      - regex: {action: reject, rules: [{pattern: forbidden}]}
      response:
      - regex: {action: mask, rules: [{pattern: shoes}]}
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[int]:
    with samples() as ports:
        yield ports["LLM"]


@pytest.fixture(scope="module")
def running(provider: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("gateway")
    found = Pool(lambda: folder).take(CONFIG.replace("LLM", str(provider)).replace("LEVEL", "full"), (1, "{}", DATABASE))
    yield found
    found.stop()
    assert "Traceback" not in found.log(), found.log()


def ask(running: Gateway, path: str, **question: Any) -> Any:
    status, _, body = ask_admin(running, "POST", f"/api/logs/{path}", json.dumps(question).encode(), JSON)
    assert status == 200, body
    return json.loads(body)


def chat(running: Gateway, model: str, text: str, path: str = "/v1/chat/completions", **more: Any) -> tuple[int, dict[str, Any]]:
    """The status of a call, and its record."""
    mark = f"{time.monotonic_ns():032x}"
    message = {"model": model, "messages": [{"role": "user", "content": text}], **more}
    status, _ = call(running, path, message, traceparent=f"00-{mark}-00f067aa0ba902b7-01")
    deadline = time.monotonic() + 40
    while not (found := ask(running, "search", filters={"traceId": mark})["logs"]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return status, dict(ask(running, "get", id=found[0]["id"])["log"])


def test_prompt_and_answer_are_kept(running: Gateway) -> None:
    status, found = chat(running, "plain", "How many é?")
    assert (status, found["hasPayload"]) == (200, True)
    assert json.loads(found["payload"]["requestPrompt"])["messages"] == [{"role": "user", "content": "How many é?"}]
    assert json.loads(found["payload"]["responseCompletion"])["choices"][0]["message"]["content"] == "You said: How many é?"
    assert "never-shown" not in json.dumps(found)
    assert ask(running, "search", filters={"hasPayload": True})["logs"]
    # They are where they were asked for, and nowhere else.
    assert "How many" not in running.log()


def test_a_stream_is_kept_as_it_was(running: Gateway) -> None:
    _, found = chat(running, "plain", "one two", stream=True)
    told = found["payload"]["responseCompletion"]
    assert told.startswith("data: ")
    assert told.rstrip().endswith("data: [DONE]")


def test_translated_answers_are_kept_in_the_client_s_format(running: Gateway) -> None:
    status, found = chat(running, "plain", "hello", path="/v1/messages", max_tokens=50)
    assert status == 200
    assert json.loads(found["payload"]["requestPrompt"])["max_tokens"] == 50
    assert json.loads(found["payload"]["responseCompletion"])["content"][0]["text"] == "You said: hello"


def test_what_guards_hide_is_hidden_here_too(running: Gateway) -> None:
    status, found = chat(running, "guarded", "write to ann@example.com about shoes")
    assert status == 200
    told = json.dumps(found)
    assert "ann@example.com" not in told
    assert "write to" in found["payload"]["requestPrompt"]
    assert "shoes" not in found["payload"]["responseCompletion"]
    status, found = chat(running, "guarded", "something forbidden")
    assert status >= 400
    assert not found["hasPayload"]
    assert "forbidden" not in json.dumps(found)


def test_long_ones_are_cut(running: Gateway) -> None:
    _, found = chat(running, "plain", "word " * 30_000)
    payload = found["payload"]
    assert [len(payload[key].encode()) for key in ("requestPrompt", "responseCompletion")] == [65_539, 65_539]
    assert payload["responseCompletion"].endswith("...")


def test_metadata_is_all_that_is_kept_otherwise(gateway: Callable[..., Gateway], provider: int) -> None:
    found = gateway(CONFIG.replace("LLM", str(provider)).replace("LEVEL", "metadata"), settings=DATABASE)
    _, record = chat(found, "plain", "How many?")
    assert not record["hasPayload"]
    assert "payload" not in record
    assert "How many" not in (found.path.parent / "data.db").read_bytes().decode("latin-1")
