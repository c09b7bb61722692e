"""Responses of models, which a tap reads on their way to the client."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import threading
import zlib
from typing import Any

import pytest
from h2.events import Event, StreamEnded, StreamReset
from rig import Message, Rig, Truncated, Upstream, on_rig
from tests.engine.link.http2_backend_rig import Backend, backend_of

from headgate.backend.llm.format_routes import ProviderPath, native
from headgate.backend.llm.off_loop import LONG_BYTES
from headgate.backend.llm.translation import Translation
from headgate.dialect.llm import pairs
from headgate_engine.link.backend import HOST
from headgate_engine.llm.backend import LlmBackend
from headgate_engine.llm.router import ModelRouter
from headgate_engine.llm.target import FormatRoute, LlmGroup, LlmTarget, ModelEntry
from headgate_engine.plan.plans import BackendPlan, RoutePlan
from headgate_engine.route.table import RouteRule, RouteTable

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
MS = 1_000_000


def event(text: str) -> bytes:
    data = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}  # fmt: skip
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def asking(*, stream: bool = True) -> bytes:
    body = json.dumps({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Hi"}]}).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def with_model(rig: Rig, stall_ns: int = 0, **more: FormatRoute) -> None:
    """Let the rig's route lead to a model whose provider is the rig's backend. `more`: further formats of clients."""
    plan = BackendPlan("provider", "llm", HOST)
    plan.pool = rig.pool
    plan.stall_ns = stall_ns
    routes = {"completions": native("completions", ProviderPath(head="/v1/chat/completions"), "openAI"), **more}
    router = ModelRouter(sole_entry=ModelEntry("m", [LlmGroup([LlmTarget(plan, "p", {"": routes})])]))
    rig.backend = BackendPlan("llm", "llm", LlmBackend(router))
    rig.backend.max_body = 1 << 20
    rig.route = RoutePlan("r", "default", "", (rig.backend,), (1,))
    rig.listener.routes = RouteTable([RouteRule(target=rig.route)])


def events(answer: Message) -> list[bytes]:
    return answer.body.split(b"\n\n")[:-1]


@on_rig()
async def test_a_stream_passes_as_it_is(rig: Rig) -> None:
    with_model(rig)
    told = [event("a"), event("b"), b"data: [DONE]\n\n"]

    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(HEAD + b"".join(map(chunk, told)) + b"0\r\n\r\n")

    rig.script = script
    answer = await rig.ask(asking())
    assert (answer.status, answer.body) == (200, b"".join(told))


@on_rig()
async def test_the_head_waits_for_the_first_event(rig: Rig) -> None:
    with_model(rig)
    go = asyncio.Event()

    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(HEAD)
        await go.wait()
        await up.send(chunk(event("a")) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    rig.script = script
    client = await rig.client()
    await client.send(asking())
    await rig.wait(lambda: rig.seen, "request at the provider")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.intake.until(b"HTTP/1.1"), 0.1)
    go.set()
    assert (await client.answer()).status == 200


@pytest.mark.parametrize("reset", [False, True])
@on_rig()
async def test_a_stream_that_breaks_off_ends_with_an_error_event(rig: Rig, reset: bool) -> None:
    with_model(rig)
    seen = asyncio.Event()

    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(HEAD + chunk(event("a")))
        await seen.wait()
        if reset:
            up.reset()

    rig.script = script
    client = await rig.client()
    await client.send(asking())
    head = await client.intake.until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    seen.set()
    body, _ = await client.intake.chunked()
    assert body.startswith(event("a"))
    last = body[len(event("a")) :]
    assert last.startswith(b"data: ")
    assert "error" in json.loads(last.split(b"\n")[0].removeprefix(b"data: "))


@on_rig()
async def test_a_stream_that_cannot_be_decoded_ends_its_call_over_http2(rig: Rig) -> None:
    """The request lets go of the call, and of what reads its answer, while both are being told of its bytes."""
    backend = await backend_of(rig)
    with_model(rig)
    ended: list[int] = []

    def handle(connection: Backend, came: Event) -> None:
        if isinstance(came, StreamEnded):
            packer = zlib.compressobj(wbits=31)
            fields = [(":status", "200"), ("content-type", "text/event-stream"), ("content-encoding", "gzip")]
            connection.h2.send_headers(came.stream_id, fields)
            connection.h2.send_data(came.stream_id, packer.compress(chosen) + packer.flush(zlib.Z_SYNC_FLUSH))
            connection.h2.send_data(came.stream_id, b"\xff" * 100)
        elif isinstance(came, StreamReset):
            ended.append(came.stream_id)

    backend.handle = handle
    chosen = event("a")
    answer = await rig.ask(asking())
    assert answer.status == 200
    assert answer.body.startswith(chosen)
    assert b'"error"' in answer.body[len(chosen) :]
    await rig.wait(lambda: ended, "the end of the call")


@on_rig()
async def test_a_stream_that_stalls_ends_with_an_error_event(rig: Rig) -> None:
    with_model(rig, stall_ns=50 * MS)
    over = asyncio.Event()

    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(HEAD + chunk(event("a")))
        await up.closed()
        over.set()

    rig.script = script
    answer = await rig.ask(asking())
    assert b'"error"' in events(answer)[-1] or b'"error"' in answer.body.rpartition(b"data: ")[2]
    await asyncio.wait_for(over.wait(), 60)


@on_rig()
async def test_a_stream_that_is_over_for_the_client_is_over_for_the_gateway(rig: Rig) -> None:
    """Clients that close at the end mark do not make the provider's connection a lost one."""
    with_model(rig)
    go = asyncio.Event()

    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(HEAD + chunk(event("a")) + chunk(b"data: [DONE]\n\n"))
        await go.wait()
        await up.send(b"0\r\n\r\n")

    rig.script = script
    client = await rig.client()
    await client.send(asking())
    await client.intake.until(b"[DONE]")
    client.close()
    await rig.wait(lambda: rig.worker.connection_count() == 0, "client gone")
    go.set()


@on_rig()
async def test_a_whole_answer_that_breaks_off_breaks_off_for_the_client(rig: Rig) -> None:
    with_model(rig)

    async def script(up: Upstream) -> None:
        await up.request()
        await up.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{")

    rig.script = script
    client = await rig.client()
    await client.send(asking(stream=False))
    try:
        answer = await client.answer()
    except (Truncated, ConnectionResetError):
        return
    assert answer.status == 502


class Slow(Translation):
    """Translates an answer when it is told to go on."""

    def __init__(self) -> None:
        pair = pairs.converter("messages", "completions")
        assert pair is not None
        super().__init__(pair, "openai")
        object.__setattr__(self, "begun", threading.Event())
        object.__setattr__(self, "go", threading.Event())
        object.__setattr__(self, "threads", [])
        object.__setattr__(self, "calls", [])

    calls: list[Any]
    begun: threading.Event
    go: threading.Event
    threads: list[threading.Thread]

    def request(self, body: bytes, call: Any, head: Any) -> Any:
        self.calls.append(call)
        return super().request(body, call, head)

    def error(self, status: int, body: bytes, asked: Any, wait_s: int = 0) -> tuple[int, bytes]:
        self.threads.append(threading.current_thread())
        return super().error(status, body, asked, wait_s)

    def reply(self, body: bytes, asked: Any, headers: Any) -> Any:
        self.threads.append(threading.current_thread())
        if threading.current_thread() is not threading.main_thread():
            self.begun.set()
            assert self.go.wait(60)
        return super().reply(body, asked, headers)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@on_rig()
async def test_the_loop_goes_on_while_a_long_answer_is_translated(rig: Rig, packed: bool) -> None:
    work = Slow()
    with_model(rig, messages=FormatRoute(
        "messages", "completions", path=ProviderPath(head="/v1/chat/completions"), translation=work))  # fmt: skip
    texts = ["a short text", random.Random(5).randbytes(LONG_BYTES).hex(), "another short one"]

    async def script(up: Upstream) -> None:
        while True:
            asked = json.loads((await up.request()).body)["messages"][0]["content"]
            message = {"role": "assistant", "content": texts[int(asked)]}
            told = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10}}).encode()  # fmt: skip
            coding = "content-encoding: gzip\r\n" if packed else ""
            await up.reply(gzip.compress(told) if packed else told, fields="content-type: application/json\r\n" + coding)

    def message(number: int) -> bytes:
        body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": str(number)}]}).encode()
        return b"POST /v1/messages HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)

    def text(answer: Message) -> str:
        return str(json.loads(answer.body)["content"][0]["text"])

    rig.script = script
    first, second = await rig.client(), await rig.client()
    assert text(await first.ask(message(0))) == texts[0]
    await first.send(message(1))
    assert await asyncio.to_thread(work.begun.wait, 60)
    assert text(await second.ask(message(2))) == texts[2], "while the long one is being translated"
    work.go.set()
    assert text(await first.answer()) == texts[1]
    main = threading.main_thread()
    assert [thread is main for thread in work.threads] == [True, False, True]
    # A client that leaves meanwhile is no fault, and what its answer costs is counted.
    work.begun.clear()
    work.go.clear()
    await first.send(message(1))
    assert await asyncio.to_thread(work.begun.wait, 60)
    first.close()
    left = work.calls[-1]
    await rig.wait(lambda: left.attempts, "the end of the attempt")
    assert (left.attempts[-1].usage.input_tokens, left.attempts[-1].usage.output_tokens) == (3, 7)
    assert text(await second.ask(message(2))) == texts[2]
    work.go.set()
    assert text(await second.ask(message(1))) == texts[1]


@on_rig()
async def test_a_long_error_is_told_beside_the_loop(rig: Rig) -> None:
    work = Slow()
    with_model(rig, messages=FormatRoute(
        "messages", "completions", path=ProviderPath(head="/v1/chat/completions"), translation=work))  # fmt: skip

    async def script(up: Upstream) -> None:
        for size in (10, 2 * LONG_BYTES):
            await up.request()
            error = json.dumps({"error": {"message": "no " * size, "type": "invalid_request_error"}}).encode()
            await up.reply(error, status=400, fields="content-type: application/json\r\n")

    rig.script = script
    one = await rig.client()
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}).encode()
    asked = b"POST /v1/messages HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    answers = [await one.ask(asked), await one.ask(asked)]
    assert [answer.status for answer in answers] == [400, 400]
    assert [json.loads(answer.body)["error"]["type"] for answer in answers] == ["invalid_request_error"] * 2
    assert [thread is threading.main_thread() for thread in work.threads] == [True, False]
