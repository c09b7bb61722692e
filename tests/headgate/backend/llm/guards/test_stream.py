"""Guards on streamed replies: windows, blocks, masks, failures."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import uvloop
from tests.oracles.guard_rig import Rig, rig

from headgate.backend.llm.guards.compile import GuardCall
from headgate.backend.llm.guards.stream import FAILED, GuardedStream, block_event
from headgate.ir.policy.prompt_guard import REJECTED
from headgate_engine.context.request import make_context
from headgate_engine.sse.decode import SseDecoder

HOOK = "{webhook: {target: {host: '127.0.0.1:{port}'}, headers: {x-team: jwt.team}}}"
OPEN = "{webhook: {target: {host: '127.0.0.1:{port}'}, failureMode: failOpen}}"
MASK = "{regex: {builtins: [email]}}"
BAN = "{regex: {action: reject, matches: [{pattern: '(?i)blue heron', name: birds}], response: {message: no birds}}}"


def chunk(text: str, index: int = 0) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": index, "delta": {"content": text}}]}).encode() + b"\n\n"


def begun(found: Rig, response: str, streaming: str = "Enabled") -> GuardCall:
    ctx = make_context("POST", "/", "a.test")
    ctx.jwt = {"team": "ops"}
    return found.guards(f"{{response: [{response}], streaming: {streaming}}}").begin(ctx)


async def bytes_of(found: Any) -> bytes:
    done = await found if not isinstance(found, bytes) else found
    assert isinstance(done, bytes)
    return done


async def sent(stream: GuardedStream, *pieces: bytes) -> bytes:
    out = b"".join([await bytes_of(stream.feed(piece)) for piece in pieces])
    return out + await bytes_of(stream.end())


def test_streams_pass_unless_that_is_switched_on() -> None:
    async def main() -> None:
        async with rig() as found:
            for off in ("Disabled", "false", "{mode: Disabled}"):
                assert begun(found, BAN, off).stream("completions") is None
            for on in ("Enabled", "enabled", "true", "{}", "{mode: Enabled}"):
                assert begun(found, BAN, on).stream("completions") is not None
            # Masks let pass what they match: nothing to do.
            assert begun(found, MASK).stream("completions") is None
            assert begun(found, MASK, "{masks: Apply}").stream("completions") is not None
            assert begun(found, BAN).stream("embeddings") is None

    uvloop.run(main())


def test_a_pattern_over_two_windows_blocks() -> None:
    async def main() -> None:
        async with rig() as found:
            call = begun(found, BAN)
            stream = call.stream("completions")
            assert stream is not None
            filler = chunk("x" * 1020 + " blue")
            first = stream.feed(filler)
            assert first == filler
            out = stream.feed(chunk(" heron and more") + b"data: [DONE]\n\n")
            assert out == b""
            out = stream.end()
            assert out == block_event("completions", "no birds")
            assert stream.blocked
            assert ("gw.ai.guardrail", "regex: birds") in call.ctx.log_field_items
            assert (found.count("Allow"), found.count("Reject")) == (1, 1)

    uvloop.run(main())


def test_every_choice_is_looked_at() -> None:
    async def main() -> None:
        async with rig() as found:
            stream = begun(found, BAN).stream("completions")
            assert stream is not None
            out = await sent(stream, chunk("fine"), chunk("Blue Heron", 1), b"data: [DONE]\n\n")
            assert out == block_event("completions", "no birds")

    uvloop.run(main())


def test_a_webhook_is_asked_for_each_window() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says({"action": {}})
            stream = begun(found, HOOK, "{windowBytes: 10, overlapBytes: 16}").stream("completions", [("x-up", "1")])
            assert stream is not None
            pieces = [chunk("0123456789"), chunk("abcdef"), chunk("ghij", 1), b"data: [DONE]\n\n"]
            assert await sent(stream, *pieces) == b"".join(pieces)
            asked = [[one["message"]["content"] for one in call.json["body"]["choices"]] for call in found.service.calls]
            assert asked == [["0123456789"], ["0123456789abcdef", "ghij"]]
            assert [call.header("x-team") for call in found.service.calls] == ["ops", "ops"]
            assert [call.target for call in found.service.calls] == ["/response", "/response"]

    uvloop.run(main())


def test_a_mask_of_a_webhook_lets_a_window_pass() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says({"action": {"body": {"choices": [{"message": {"role": "assistant", "content": "***"}}]}}})
            stream = begun(found, HOOK).stream("completions")
            assert stream is not None
            assert await sent(stream, chunk("text")) == chunk("text")

    uvloop.run(main())


def test_a_webhook_that_refuses_ends_the_stream_in_its_words() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says({"action": {"body": "desk 7", "status_code": 451}})
            stream = begun(found, HOOK).stream("messages")
            assert stream is not None
            delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}
            out = await sent(stream, b"event: content_block_delta\ndata: " + json.dumps(delta).encode() + b"\n\n")
            [event] = SseDecoder().decode(out)
            assert event.event == "error"
            error = {"type": "guardrail_blocked", "code": "guardrail_intervention", "message": "desk 7"}
            assert json.loads(event.data) == {"type": "error", "error": error}

    uvloop.run(main())


@pytest.mark.parametrize("broken", [None, (200, b"oops"), (500, b'{"action":{}}')])
def test_a_webhook_that_cannot_tell(broken: Any) -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.answer = lambda _: broken
            stream = begun(found, HOOK).stream("completions")
            assert stream is not None
            assert await sent(stream, chunk("x")) == block_event("completions", FAILED)
            stream = begun(found, OPEN).stream("completions")
            assert stream is not None
            assert await sent(stream, chunk("x")) == chunk("x")
            assert (found.count("FailClosed"), found.count("FailOpen")) == (1, 1)

    uvloop.run(main())


def test_masks_apply_where_that_is_wanted() -> None:
    async def main() -> None:
        async with rig() as found:
            stream = begun(found, f"{MASK}, {BAN}", "{masks: Apply}").stream("completions")
            assert stream is not None
            out = await sent(stream, chunk("mail jo@"), chunk("ex.io now"), b"data: [DONE]\n\n")
            text = "".join(json.loads(event.data)["choices"][0]["delta"]["content"] for event in SseDecoder().decode(out)[:-1])
            assert text == "mail <EMAIL_ADDRESS> now"
            assert found.count("Mask") == 1
            # Without that setting what is matched passes.
            stream = begun(found, f"{MASK}, {BAN}").stream("completions")
            assert stream is not None
            assert await sent(stream, chunk("a@b.co")) == chunk("a@b.co")

    uvloop.run(main())


def test_an_event_that_is_too_large_to_be_read_ends_the_stream() -> None:
    async def main() -> None:
        async with rig() as found:
            stream = begun(found, BAN).stream("completions")
            assert stream is not None
            assert stream.feed(b"data: " + b"x" * 10_000_000) == block_event("completions", FAILED)

    uvloop.run(main())


def test_a_stream_that_breaks_off_is_judged_to_its_end() -> None:
    async def main() -> None:
        async with rig() as found:
            stream = begun(found, BAN).stream("completions")
            assert stream is not None
            assert await sent(stream, chunk("Blue Heron")[:-2]) == block_event("completions", "no birds")

    uvloop.run(main())


def test_a_client_that_leaves_ends_the_question() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.answer = lambda _: 30.0
            stream = begun(found, HOOK).stream("completions")
            assert stream is not None
            assert stream.feed(chunk("x")) == b""
            task = asyncio.gather(bytes_of(stream.end()))
            await found.service.came.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    uvloop.run(main())


def test_the_default_text_of_a_block() -> None:
    assert json.loads(block_event("completions", REJECTED)[6:]) == {
        "error": {"type": "guardrail_blocked", "code": "guardrail_intervention", "message": REJECTED}
    }
    [event] = SseDecoder().decode(block_event("responses", "m"))
    assert event.event == "error"
    assert json.loads(event.data)["type"] == "error"
    assert json.loads(event.data)["message"] == "m"
