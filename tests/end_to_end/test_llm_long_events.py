"""Single events of streams above what is kept of one: an error of the client's format, never a silent cut; untranslated ones go through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.end_to_end.llm_formats import frame
from tests.end_to_end.llm_rig import Rig, served, stand_ins
from tests.end_to_end.provider_stand_in import DONE, chat, chunk, event, message_events, stream, whole

CONFIG = """
gateways: {default: {port: {port}}}
llm:
  models:
  - {name: "gpt-*", provider: openai, params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-openai}}
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: sk-ant-api}}
  - {name: "aws-*", provider: bedrock, params: {baseUrl: "http://127.0.0.1:PROVIDER", apiKey: bedrock-key}}
"""
HI: Any = [{"role": "user", "content": "hi"}]
# Client: path and body of a request for a stream.
CLIENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "completions": ("/v1/chat/completions", {"messages": HI, "stream": True}),
    "messages": ("/v1/messages", {"messages": HI, "max_tokens": 9, "stream": True}),
    "responses": ("/v1/responses", {"input": "hi", "stream": True}),
    "gemini": ("/v1beta/models/{model}:streamGenerateContent?alt=sse", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
}
# Above 8 MiB of a server-sent event, and above 16 MiB of a frame.
EVENT, FRAME = "x" * (9 << 20), "x" * (17 << 20)
BEGUN = message_events("hel")[:4]
# Model: what its provider says first, and the event that is too long.
TOO_LONG: dict[str, tuple[list[bytes], bytes, str]] = {
    "claude-x": (BEGUN, event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": EVENT}},
                              "content_block_delta"), ""),
    "gpt-x": ([chunk("hel")], chunk(EVENT), ""),
    "aws-x": ([frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hel"}})],
              frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": FRAME}}), "application/vnd.amazon.eventstream"),
}  # fmt: skip
# The client's own format at the provider is not translated.
WAYS = [(client, model) for model in TOO_LONG for client in CLIENTS
        if (client, model) not in (("messages", "claude-x"), ("completions", "gpt-x"), ("responses", "gpt-x"))]  # fmt: skip


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with (
        stand_ins(whole(chat())) as [provider],
        served(tmp_path_factory.mktemp("long_events"), CONFIG.replace("PROVIDER", str(provider.port))) as running,
    ):
        yield Rig(running, provider)


def ask(rig: Rig, client: str, model: str) -> Any:
    path, body = CLIENTS[client]
    return rig.post({"model": model, **body}, path.replace("{model}", model))


@pytest.mark.parametrize(("client", "model"), WAYS)
@pytest.mark.parametrize("words", [True, False])
def test_an_event_that_is_too_long_is_an_error_of_the_client_s_format(rig: Rig, client: str, model: str, words: bool) -> None:
    begun, long, kind = TOO_LONG[model]
    first = begun if words else begun[:-1]
    rig.answers(stream(*first, long, **({"kind": kind} if kind else {})))
    told = ask(rig, client, model)
    if not words and (client, model) != ("responses", "claude-x"):
        assert (told.status_code, told.headers["content-type"]) == (502, "application/json")
        error = told.json()["error"]
    else:
        # Clients of Responses have been told that the answer has begun.
        assert told.status_code == 200
        assert ("hel" in told.text) is words
        *_, last = [line for line in told.text.splitlines() if line.startswith("data: ")]
        event = json.loads(last.removeprefix("data: "))
        error = event.get("error") or event.get("response", {}).get("error") or event
        # Nothing says that the answer is whole.
        assert not any(end in told.text for end in ("[DONE]", "message_stop", "response.completed", '"STOP"'))
    assert "is too long" in error["message"]
    assert len(told.content) < 1 << 20


@pytest.mark.parametrize(("client", "model"), [("messages", "claude-x"), ("completions", "gpt-x")])
def test_streams_that_are_not_translated_keep_their_long_events(rig: Rig, client: str, model: str) -> None:
    begun, long, _ = TOO_LONG[model]
    end = message_events()[-3:] if client == "messages" else [chunk(None, "stop"), DONE]
    rig.answers(stream(*begun, long, *end))
    assert ask(rig, client, model).content == b"".join((*begun, long, *end))
