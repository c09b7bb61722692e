"""Answers of the gateway's own in the words of each format."""

from __future__ import annotations

import json

import pytest

from headgate.backend.llm.guards.stream import FAILED
from headgate.backend.llm.own_errors import ADVICE, GUARD_TEXTS, KEPT, KEPT_BYTES, _body, speak
from headgate.dialect.llm import faults
from headgate.pipeline.replies import (
    GUARD_FAILED,
    GUARD_REFUSED,
    POLICY_ROWS,
    REPLIES,
    TOKENS_LIMITED,
    ReplyRow,
    reply_of,
)
from headgate_engine.context.request import Reply

TEXT = (b"content-type", b"text/plain")
ROWS = [row for row in (*REPLIES.values(), *(row for _, row, _ in POLICY_ROWS)) if row.reason in ADVICE]
FORMATS = ("completions", "messages", "responses", "gemini", "rerank", "embeddings", "realtime", "passthrough", "converse")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("row", ROWS, ids=[f"{row.status} {row.body[:30]}" for row in ROWS])
def test_every_answer_of_the_table_keeps_its_text_and_says_what_to_do(format: str, row: ReplyRow) -> None:
    given = reply_of(row)
    told = speak(format, given, -1, -1, -1)
    assert (told.status, told.reason) == (row.status, row.reason)
    assert dict(told.headers)[b"content-type"] == b"application/json"
    body = json.loads(told.body)
    assert (dict(told.headers).get(faults.AWS_FIELD) is not None) == (format == "converse")
    message = body["message"] if format in ("rerank", "converse") else body["error"]["message"]
    text = json.loads(row.body)["error_description"] if row.body.startswith("{") else row.body
    assert message.startswith(f"{text}: " if text else "")
    assert len(message) > len(text) + 10
    if format == "completions":
        assert body["error"]["code"]


def test_texts_of_guards_are_those_that_guards_have() -> None:
    assert {GUARD_REFUSED.body, GUARD_FAILED.body, FAILED} == GUARD_TEXTS


@pytest.mark.parametrize(
    "given",
    [
        Reply(403, b"no herons", (), "Guardrail"),
        Reply(403, GUARD_REFUSED.body.encode(), ((b"x-own", b"1"),), "Guardrail"),
        Reply(418, b"teapot", (TEXT,), "DirectResponse"),
        Reply(401, b"oidc failure", (TEXT,), "Oidc"),
        Reply(403, b'{"denied": true}', (), "Guardrail"),
        Reply(429, faults.write("completions", 429, faults.LlmFault("rate_limit_error", "m")), (), "UpstreamFailure"),
        Reply(429, faults.write("messages", 429, faults.LlmFault("rate_limit_error", "m")), (), "UpstreamFailure"),
        Reply(429, faults.write("gemini", 429, faults.LlmFault("rate_limit_error", "m")), (), "UpstreamFailure"),
        Reply(404, faults.write("rerank", 404, faults.LlmFault("x", "m")), (), "UpstreamFailure"),
    ],
)
@pytest.mark.parametrize("format", ["completions", "messages"])
def test_what_is_configured_or_told_already_goes_as_it_is(format: str, given: Reply) -> None:
    assert speak(format, given, -1, -1, -1) is given


def test_fields_stay_and_limits_are_told() -> None:
    challenge = (b"www-authenticate", b"Bearer")
    told = speak("completions", Reply(401, b"no", (TEXT, challenge), "JwtAuth"), -1, -1, -1)
    assert challenge in told.headers
    told = speak("completions", TOKENS_LIMITED, 100, 0, 90)
    assert dict(told.headers) == {
        b"content-type": b"application/json", b"retry-after": b"90", b"x-ratelimit-limit-tokens": b"100",
        b"x-ratelimit-remaining-tokens": b"0", b"x-ratelimit-reset-tokens": b"1m30s",
    }  # fmt: skip
    assert json.loads(told.body)["error"]["message"] == "rate limit exceeded: wait 90 s, then send the request again"
    busy = Reply(429, b"too many logins", (TEXT, (b"retry-after", b"7")), "BasicAuth")
    assert (b"retry-after", b"7") in speak("gemini", busy, -1, -1, -1).headers
    assert json.loads(speak("gemini", busy, -1, -1, -1).body)["error"]["details"][0]["retryDelay"] == "7s"


def test_long_answers_are_not_kept() -> None:
    before = _body.cache_info().currsize
    for at in range(5):
        text = f"no model {at}{'x' * KEPT_BYTES}"
        told = speak("completions", Reply(404, text.encode(), (TEXT,), "NotFound"), -1, -1, -1)
        assert json.loads(told.body)["error"]["message"].startswith(text)
    assert _body.cache_info().currsize == before
    speak("completions", Reply(404, b"a short one", (TEXT,), "NotFound"), -1, -1, -1)
    assert _body.cache_info().currsize <= KEPT
