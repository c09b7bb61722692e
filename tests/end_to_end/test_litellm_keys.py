"""LiteLLM's client with virtual keys: answers, streams, refusals and failures, in two formats."""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.key_failures_rig import IN, KINDS, OUT, WORDS, Failing
from tests.end_to_end.provider_stand_in import DONE, StandIn, chunk, event, stream, whole
from tests.end_to_end.provider_stand_in import chat as answer
from tests.end_to_end.stored_rig import ask
from tests.end_to_end.virtual_keys_rig import Start, make, started

pytestmark = pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="run `make llm-clients`")
# It would fetch prices from the Internet.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
# Of OpenAI's format, and of Anthropic's, which is translated.
CLIENTS = pytest.mark.parametrize("client", ["openai", "anthropic"])


@pytest.fixture
def provider(stand_in: Any) -> StandIn:
    found: StandIn = stand_in(whole(answer() | {"usage": USAGE}))
    return found


@pytest.fixture
def running(gateway: Start, provider: StandIn, tmp_path: Path) -> Gateway:
    return started(gateway, provider, f"sqlite://{tmp_path}/keys.db", 2)


def complete(running: Gateway, client: str, key: str, model: str = "real", **more: Any) -> Any:
    from litellm import completion

    base = f"{running.url}/v1" if client == "openai" else running.url
    if client == "anthropic":
        # Of itself it sends the key as `x-api-key`; where keys are looked for is one place (`location`).
        more["extra_headers"] = {"authorization": f"Bearer {key}"}
    return completion(
        model=f"{client}/{model}", api_base=base, api_key=key, max_tokens=7, num_retries=0, max_retries=0,
        messages=[{"role": "user", "content": "hi"}], **more,
    )  # fmt: skip


@CLIENTS
def test_answers_and_streams_are_had_and_charged(running: Gateway, provider: StandIn, client: str) -> None:
    key = make(running, "ci", limits=[{"dollars": 1, "per": "day"}])
    found = complete(running, client, key)
    assert found.choices[0].message.content == answer()["choices"][0]["message"]["content"]
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (11, 7)
    counted = event({"choices": [], "model": "real", "usage": USAGE})
    provider.answers[:] = [stream(chunk("hel"), chunk("lo", "stop"), counted, DONE)]
    assert "".join(one.choices[0].delta.content or "" for one in complete(running, client, key, stream=True)) == "hello"
    running.wait(lambda: ask(running, "GET", "/api/spend?by=key")[1]["rows"][0]["calls"] == 2)
    [row] = ask(running, "GET", "/api/spend?by=key")[1]["rows"]
    assert (row["inputTokens"], row["outputTokens"]) == (22, 14)


@CLIENTS
def test_refusals_are_the_errors_that_programs_expect(running: Gateway, provider: StandIn, client: str) -> None:
    from litellm.exceptions import APIError, AuthenticationError, PermissionDeniedError, RateLimitError

    spent = make(running, "spent", limits=[{"requests": 1, "per": "month"}])
    complete(running, client, spent)
    with pytest.raises(RateLimitError) as limited:
        complete(running, client, spent)
    assert "has a limit of 1 requests a month" in str(limited.value)
    revoked = make(running, "revoked")
    assert ask(running, "POST", "/api/keys/revoked/revoke", {})[0] == 200
    for key in (revoked, "hg-unknown"):
        with pytest.raises(AuthenticationError):
            complete(running, client, key)
    narrow = make(running, "narrow", allowedModels=["other"])
    with pytest.raises((PermissionDeniedError, APIError)) as refused:
        complete(running, client, narrow)
    assert refused.value.status_code == 403
    assert len(provider.seen) == 1


def streamed(running: Gateway, key: str, kind: str) -> str:
    """Have a stream to its end, or leave it after its words. Return the error's name, empty without one."""
    from openai import OpenAIError

    heard = 0
    try:
        found = complete(running, "openai", key, stream=True, extra_body={"user": kind})
        for one in found:
            heard += (one.choices[0].delta.content or "").count(" word")
            if kind == "left" and heard == WORDS:
                found.completion_stream.close()
                break
    except OpenAIError as error:
        # Those of LiteLLM are errors of OpenAI's client.
        return type(error).__name__
    return ""


def test_ledger_budget_and_provider_agree_whatever_fails(gateway: Start, stand_in: Any, tmp_path: Path) -> None:
    """32 callers: streams to their end, that break, that are left, connections that are reset, errors of the provider."""
    failing = Failing()
    provider: StandIn = stand_in(failing)
    running = started(gateway, provider, f"sqlite://{tmp_path}/keys.db", 2)
    # What a prompt is charged with that no provider has counted.
    probe = make(running, "probe")
    streamed(running, probe, "cut")
    running.wait(lambda: row(running, "probe")["calls"] == 1)
    prompt = row(running, "probe")["inputTokens"]
    provider.seen.clear()
    key = make(running, "ci", limits=[{"dollars": 1, "per": "day"}])
    kinds = [KINDS[number % len(KINDS)] for number in range(40)]
    with ThreadPoolExecutor(32) as pool:
        told = list(zip(kinds, pool.map(lambda kind: streamed(running, key, kind), kinds), strict=True))
    failing.over.set()
    found = Counter(told)
    for kind in KINDS:
        assert bool(found[kind, ""]) == (kind in ("whole", "left")), found
    asked = Counter(one.json["user"] for one in provider.seen)
    assert asked == Counter(kinds)
    broken = asked["cut"] + asked["left"]
    taken_in, taken_out = failing.told * 11 + broken * prompt, failing.told * 7 + broken * WORDS
    running.wait(lambda: row(running, "ci")["calls"] == asked.total())
    ledger = row(running, "ci")
    assert (ledger["inputTokens"], ledger["outputTokens"], ledger["costPicos"]) == (taken_in, taken_out, taken_in * IN + taken_out * OUT)
    usage = ask(running, "GET", "/api/keys/ci")[1]["usage"]
    assert usage["day"]["dollars"] == ledger["costPicos"]
    assert usage["reserved"] == {"requests": 0, "tokens": 0, "dollars": 0}


def row(running: Gateway, name: str) -> dict[str, Any]:
    rows = ask(running, "GET", "/api/spend?by=key")[1]["rows"]
    return next((one for one in rows if one["key"] == name), {"calls": 0})
