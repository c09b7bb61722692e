"""A fault of the recorder never reaches the request."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.trace.outlet import Outlet
from headgate.trace.recorder import Nested, Recorder
from headgate_engine.context.request import make_context
from headgate_engine.llm.attempt import LlmAttempt


class Broken:
    """Descriptions that fail."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def fail(*_: object) -> None:
            raise RuntimeError(name)

        return fail


def recorded(test: Callable[[Recorder], Awaitable[None] | None]) -> list[dict[str, Any]]:
    """The events that `test` leads to."""

    async def main() -> bytes:
        reader, writer = os.pipe()
        recorder = Recorder(Outlet(writer), make_context("GET", "/", "a.test"), Broken(), 100)
        waiting = test(recorder)
        if waiting is not None:
            await waiting
        if not recorder.closed:
            recorder.over()
        with os.fdopen(reader, "rb") as file:
            return file.read()

    return [json.loads(line) for line in asyncio.run(main()).splitlines() if line]


def test_a_fault_ends_the_trace_and_nothing_else() -> None:
    def test(recorder: Recorder) -> None:
        recorder.note("before", "x")
        recorder.listener_chosen(None)
        assert recorder.closed
        recorder.note("after", "x")
        recorder.call_ended(200, None)
        recorder.over()

    assert [event["message"]["kind"] for event in recorded(test)] == ["before"]


def test_the_trace_waits_for_the_calls_that_the_request_began() -> None:
    def test(recorder: Recorder) -> None:
        nested = recorder.scoped("requestMirror")
        assert isinstance(nested, Nested)
        began = nested.nested_started("127.0.0.1:1")
        recorder.finished(200, None, None)
        recorder.over()
        assert not recorder.closed
        nested.nested_ended(began, 204, None)
        assert recorder.closed

    events = recorded(test)
    assert [event["message"]["type"] for event in events] == [
        "backendCallStart", "requestFinished", "backendCallResult"
    ]
    assert events[0]["scope"] == events[2]["scope"] == ["mirror"]


def test_an_error_text_shows_no_credential() -> None:
    events = recorded(lambda recorder: recorder.finished(0, "no answer from /x?api_key=abcdef", None))
    assert events[0]["message"]["error"] == "no answer from /x?api_key=<redacted>"
    assert events[0]["message"]["status"] is None


@pytest.mark.parametrize(
    ("content_type", "framing"),
    [
        ("text/event-stream; charset=utf-8", "sse"),
        ("application/vnd.amazon.eventstream", "aws-eventstream"),
        (None, "sse"),
    ],
)
def test_a_translated_stream_is_told_with_its_framing(content_type: str | None, framing: str) -> None:
    attempt = cast(
        LlmAttempt, SimpleNamespace(provider="bedrock", client_format="messages", upstream_format="converse")
    )
    events = recorded(lambda recorder: recorder.stream_translated(attempt, content_type))
    assert events[0]["message"] == {
        "type": "llmStreamingTranslation",
        "provider": "bedrock",
        "inputFormat": "messages",
        "upstreamRouteType": "converse",
        "streamFormat": framing,
    }
