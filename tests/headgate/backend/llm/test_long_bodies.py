"""Work on long bodies is done before the engine needs it, in another thread, and comes to the same."""

from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.backend.llm import long_bodies, off_loop, vertex
from headgate.backend.llm.long_bodies import counting_step, estimate, measuring_step, translation_step
from headgate.backend.llm.off_loop import LONG_BYTES
from headgate.backend.llm.translation import Translation
from headgate.dialect.llm import pairs
from headgate_drivers.llm import tokens_of_prompt
from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import Reply, RequestContext, make_context
from headgate_engine.llm.bodies import DECODED
from headgate_engine.llm.bounds import worst_of
from headgate_engine.llm.translate import sliced
from headgate_engine.plan.step import CONTINUE_VERDICT, run_step, settle
from headgate_engine.shared.segment import Segment
from headgate_engine.steps.long_body import LongBodyStep
from headgate_engine.steps.virtual_key import KeyUse, VirtualKey

LONG = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a word of a turn, "} for _ in range(20_000)]}


class CallOf:
    """What a step sees of a request, and the thread in which its translation runs."""

    format = "messages"
    history = None
    adapt: Any = None
    adapted: tuple[bytes, bytes] | None = None
    streaming = False
    edits_final = False
    final_document: tuple[bytes, Any] | None = None
    requested = None
    model = "m"

    def __init__(self, translation: Translation | None) -> None:
        self.translated: tuple[bytes, Any] | None = None
        self.prompt_estimate = -1
        self.threads: list[threading.Thread] = []
        self._own = translation
        self.translation = None if translation is None else SimpleNamespace(request=self.request)

    def request(self, body: bytes, call: Any, head: MessageHead) -> Any:
        self.threads.append(threading.current_thread())
        assert self._own is not None
        return self._own.request(body, call, head)


def context_of(body: bytes, call: CallOf | None) -> RequestContext:
    context = make_context(body=body)
    context.llm = call
    return context


def translation() -> Translation:
    return Translation(pairs.converter("messages", "completions"), "openai")


@pytest.mark.parametrize("make", [counting_step, measuring_step, translation_step])
def test_short_bodies_are_left_to_the_engine(make: Any) -> None:
    step: LongBodyStep = make()
    assert step.limit == LONG_BYTES
    call = CallOf(translation())
    for body in (b"", b"{}", b" " * LONG_BYTES):
        assert run_step(step, context_of(body, call)) == CONTINUE_VERDICT
    assert (call.translated, call.prompt_estimate, call.threads) == (None, -1, [])
    assert run_step(step, context_of(b" " * (LONG_BYTES + 1), None)) == CONTINUE_VERDICT
    assert run_step(translation_step(), context_of(b" " * (LONG_BYTES + 1), CallOf(None))) == CONTINUE_VERDICT


def test_a_long_request_is_translated_in_another_thread_as_it_would_be_on_the_loop() -> None:
    body = json.dumps(LONG).encode()
    call, inline = CallOf(translation()), CallOf(translation())
    assert asyncio.run(settle(translation_step(), context_of(body, call))) is None
    assert call.translated is not None
    assert call.translated[0] is body
    made, suffix = call.translated[1]
    assert call.threads != [threading.main_thread()]
    expected, expected_suffix = translation().request(body, inline, MessageHead())  # type: ignore[misc, arg-type]
    assert (json.loads(made), suffix) == (json.loads(expected), expected_suffix)
    assert len(json.loads(made)["messages"]) == 20_000


def test_what_goes_to_the_provider_is_read_in_another_thread_for_expressions_that_edit_it() -> None:
    body = json.dumps(LONG).encode()
    call, native = CallOf(translation()), CallOf(None)
    for one in (call, native):
        one.edits_final = True
        assert asyncio.run(settle(translation_step(), context_of(body, one))) is None
        assert one.final_document is not None
    assert call.translated is not None
    assert native.final_document[0] is body
    assert native.final_document[1] == LONG
    made, _ = call.translated[1]
    assert call.final_document[0] is made
    assert call.final_document[1] == json.loads(made)


@pytest.mark.parametrize("dialect", [vertex.claude_body, vertex.count_body])
def test_the_provider_s_dialect_is_made_in_another_thread_and_read_for_expressions(dialect: Any) -> None:
    body = json.dumps({**LONG, "system": [{"type": "text", "text": "x", "cache_control": {"scope": "y"}}]}).encode()
    threads = []

    def adapt(body: bytes, streaming: bool) -> bytes:
        threads.append(threading.current_thread())
        made: bytes = dialect(body, streaming)
        return made

    call, native = CallOf(translation()), CallOf(None)
    for one, final in ((call, True), (native, True), (native, False)):
        one.edits_final, one.adapt, one.final_document = final, adapt, None
        assert asyncio.run(settle(translation_step(), context_of(body, one))) is None
        assert one.adapted is not None
        assert one.adapted[1] == dialect(one.adapted[0], False)
        assert one.final_document == ((one.adapted[1], json.loads(one.adapted[1])) if final else None)
    assert threading.main_thread() not in threads
    assert native.adapted is not None
    assert call.adapted is not None
    assert call.translated is not None
    assert native.adapted[0] is body
    assert call.adapted[0] is call.translated[1][0]
    assert b"scope" not in native.adapted[1]


def test_what_has_no_dialect_is_left_to_the_engine() -> None:
    call = CallOf(None)
    call.edits_final, call.adapt = True, vertex.claude_body
    assert asyncio.run(settle(translation_step(), context_of(b"[" * (LONG_BYTES + 1), call))) is None
    assert (call.adapted, call.final_document) == (None, None)


@pytest.mark.parametrize("translated", [False, True])
def test_what_is_no_json_is_left_to_the_engine(translated: bool) -> None:
    call = CallOf(translation() if translated else None)
    call.edits_final = True
    assert asyncio.run(settle(translation_step(), context_of(b"[" * (LONG_BYTES + 1), call))) is None
    assert call.final_document is None


@pytest.mark.parametrize("body", [b"[" * (LONG_BYTES + 1), b'{"model":' + b" " * LONG_BYTES])
def test_what_cannot_be_translated_is_refused(body: bytes) -> None:
    call = CallOf(translation())
    assert asyncio.run(settle(translation_step(), context_of(body, call))) is None
    assert call.translated is not None
    assert isinstance(call.translated[1], Reply)
    assert call.translated[1].status == 400


def test_a_long_prompt_is_counted_once_as_it_would_be_on_the_loop() -> None:
    body = json.dumps(LONG).encode()
    call = CallOf(None)
    context = context_of(body, call)
    assert asyncio.run(settle(counting_step(), context)) is None
    assert call.prompt_estimate == tokens_of_prompt("messages", body) > 20_000
    call.prompt_estimate = 5
    assert asyncio.run(settle(counting_step(), context)) is None
    assert call.prompt_estimate == 5


def test_what_a_long_request_may_come_to_is_read_once_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [{"name": "f", "input_schema": {"properties": {f"p{at}": {"type": "string"} for at in range(5000)}}}]
    document = {**LONG, "tools": tools}
    body, threads = json.dumps(document).encode(), []
    read = long_bodies.load_sliced

    def loaded(body: bytes) -> Any:
        threads.append(threading.current_thread())
        return read(body)

    monkeypatch.setattr(long_bodies, "load_sliced", loaded)
    use = KeyUse(VirtualKey(Segment.create(state_bytes=1 << 20), ("k", ""), {}, ()))
    context = context_of(body, CallOf(None))
    assert run_step(measuring_step(), context) == CONTINUE_VERDICT      # a request without a virtual key
    context.key_use = use
    for _ in range(2):
        assert asyncio.run(settle(measuring_step(), context)) is None
    assert use.knows(body)
    assert use.measured == worst_of("messages", body, document)
    assert use.measured[1] > 5000
    assert (len(threads), threading.main_thread() in threads) == (1, False)
    # What routing has read is used again, for the very body that it is of only.
    other = json.dumps({**document, "max_tokens": 77}).encode()
    for known, reads in ((other, 1), (body, 2)):
        context = context_of(other, CallOf(None))
        context.key_use = use
        context.dynamic = {DECODED: (known, json.loads(other), -1)}
        use.note(body, (0, 0, 0, 0, 0))
        assert asyncio.run(settle(measuring_step(), context)) is None
        assert (use.measured[2], len(threads)) == (77, reads)
    for broken in (b"[" * 300_000, b"{" + b" " * 300_000):
        context = context_of(broken, CallOf(None))
        context.key_use = use
        assert asyncio.run(settle(measuring_step(), context)) is None
        assert use.measured == (0, len(broken) // 3, 0, 0, 0, (0, 0, 0, 0, False))


def test_one_long_text_is_counted_as_many_short_ones_are_read() -> None:
    text = "a word, "
    one = json.dumps({"messages": [{"role": "user", "content": text * 9_000}]}).encode()
    assert estimate("messages", one) == tokens_of_prompt("messages", one) > 9_000
    for broken in (b"", b"[" * 300_000, b"{", b"[1]"):
        assert estimate("messages", broken) == 0


def test_no_call_of_the_decoder_gets_more_than_two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call holds the interpreter's lock until it is done, so what one call gets is what others wait for."""
    body = json.dumps(LONG).encode()
    runs = [stop - start for start, stop in sliced.cuts(body[body.index(b"[") : body.rindex(b"]") + 1], sliced.SLICE)]
    assert len(runs) > 10
    assert max(runs) <= 2 * sliced.SLICE
    assert off_loop.LONG_BYTES >= 2 * sliced.SLICE
