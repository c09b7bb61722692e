"""Long bodies are read beside the loop before a provider is chosen, and come to what they would on the loop."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from typing import Any
from unittest import mock

import pytest
from rig import Message, Rig, on_rig

from headgate.backend.llm import long_bodies
from headgate.backend.llm.format_routes import PLAIN, Dialect, ProviderPath, native
from headgate.backend.llm.long_bodies import reading_step, translation_step
from headgate.backend.llm.off_loop import CODED_BYTES, LONG_BYTES, PEEK_BYTES
from headgate.expr.compile import compile_expression
from headgate_drivers.llm import tokens_of_prompt
from headgate_engine.link.backend import HOST
from headgate_engine.llm.backend import LlmBackend
from headgate_engine.llm.router import ModelRouter
from headgate_engine.llm.target import LlmEdits, LlmGroup, LlmTarget, ModelEntry
from headgate_engine.plan.plans import BackendPlan, RoutePlan
from headgate_engine.route.table import RouteRule, RouteTable


def counting(rig: Rig, edits: LlmEdits | None = None, *, asked: bool = False, dialect: Dialect = PLAIN) -> None:
    """Let the rig's route lead to a model whose provider cannot count tokens. `asked`: expressions read the body."""
    plan = BackendPlan("provider", "llm", HOST)
    plan.pool = rig.pool
    plan.request_steps = (translation_step(),)
    routes = {
        "completions": native("completions", ProviderPath(head="/v1/chat/completions"), "openAI", dialect),
        "passthrough": native("passthrough", ProviderPath(), "openAI", dialect),
    }
    router = ModelRouter(sole_entry=ModelEntry("m", [LlmGroup([LlmTarget(plan, "p", {"": routes}, edits=edits)])]))
    backend = LlmBackend(router)
    assert backend.reads_request is asked
    backend.long_bytes, backend.coded_bytes, backend.peek_bytes = LONG_BYTES, CODED_BYTES, PEEK_BYTES
    backend.reading = BackendPlan("long body", "llm", HOST)
    backend.reading.request_steps = (reading_step(router, asked),)
    rig.backend = BackendPlan("llm", "llm", backend)
    rig.backend.max_body = backend.reading.max_body = 4 << 20
    rig.route = RoutePlan("r", "default", "", (rig.backend,), (1,))
    rig.listener.routes = RouteTable([RouteRule(target=rig.route)])


def body_of(turns: int) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "a few words of a turn"}] * turns}).encode()


def asking(body: bytes, fields: bytes = b"") -> bytes:
    head = b"POST /v1/messages/count_tokens HTTP/1.1\r\nhost: a.test\r\n%scontent-length: %d\r\n\r\n"
    return head % (fields, len(body)) + body


def counted(answer: Message) -> Any:
    assert answer.status == 200
    return json.loads(answer.body)


@on_rig()
async def test_the_loop_goes_on_while_a_long_prompt_is_counted(rig: Rig) -> None:
    counting(rig)
    begun, go, threads = threading.Event(), threading.Event(), []
    read = long_bodies.read_document

    def slow(body: bytes, form: str | None) -> Any:
        threads.append((threading.current_thread(), form))
        begun.set()
        assert go.wait(60)
        return read(body, form)

    short, long = body_of(1), body_of(10_000)
    assert len(long) > LONG_BYTES
    with mock.patch.object(long_bodies, "read_document", slow):
        first, second = await rig.client(), await rig.client()
        await first.send(asking(long))
        assert await asyncio.to_thread(begun.wait, 60)
        assert counted(await second.ask(asking(short))) == {"input_tokens": tokens_of_prompt("count_tokens", short)}
        go.set()
        assert counted(await first.answer()) == {"input_tokens": tokens_of_prompt("count_tokens", long)}
        # A client that leaves meanwhile ends its request.
        begun.clear()
        go.clear()
        await first.send(asking(long))
        assert await asyncio.to_thread(begun.wait, 60)
        first.close()
        assert counted(await second.ask(asking(short)))["input_tokens"] > 0
        go.set()
    assert [form for _, form in threads] == ["count_tokens"] * 2
    assert threading.main_thread() not in [thread for thread, _ in threads]


@on_rig()
async def test_the_loop_goes_on_while_a_body_is_taken_out_of_its_coding(rig: Rig) -> None:
    counting(rig)
    begun, go, threads = threading.Event(), threading.Event(), []
    unpacked = long_bodies.unpacked

    def slow(coding: str, body: bytes, most: int) -> Any:
        threads.append(threading.current_thread())
        begun.set()
        assert go.wait(60)
        return unpacked(coding, body, most)

    short, long = body_of(1), body_of(10_000)
    packed = gzip.compress(long)
    with mock.patch.object(long_bodies, "unpacked", slow):
        first, second = await rig.client(), await rig.client()
        await first.send(asking(packed, b"content-encoding: gzip\r\n"))
        assert await asyncio.to_thread(begun.wait, 60)
        assert counted(await second.ask(asking(short))) == {"input_tokens": tokens_of_prompt("count_tokens", short)}
        go.set()
        assert counted(await first.answer()) == {"input_tokens": tokens_of_prompt("count_tokens", long)}
        answer = await second.ask(asking(packed[:-9], b"content-encoding: gzip\r\n"))
        assert answer.status == 400
    assert len(threads) == 2
    assert threading.main_thread() not in threads


@on_rig()
async def test_the_loop_goes_on_while_a_long_body_is_looked_through(rig: Rig) -> None:
    """What routing needs of a long body, and where its members stand, is read beside the loop whatever is configured."""
    counting(rig, LlmEdits(overrides={"temperature": 1}))
    begun, go, threads = threading.Event(), threading.Event(), []
    looked_through = long_bodies.looked_through

    def slow(body: bytes, deployment: str | None) -> Any:
        threads.append(threading.current_thread())
        begun.set()
        assert go.wait(60)
        return looked_through(body, deployment)

    short = b'{"model": "m", "messages": []}'
    long = b'{"temperature": 2, "messages": [%s], "model": "m"}' % b",".join([b'{"role":"user","content":"ab"}'] * 20_000)
    assert len(long) > PEEK_BYTES
    head = b"POST %s HTTP/1.1\r\nhost: a.test\r\n%scontent-length: %d\r\n\r\n"
    with mock.patch.object(long_bodies, "looked_through", slow):
        first, second = await rig.client(), await rig.client()
        for path, fields, sent, model in (
            (b"/v1/chat/completions", b"", long, b'"m"'),
            (b"/openai/deployments/gpt/chat/completions", b"", long, b'"gpt"'),
            (b"/v1/chat/completions", b"content-encoding: gzip\r\n", gzip.compress(long), b'"m"'),
        ):
            begun.clear()
            go.clear()
            await first.send(head % (path, fields, len(sent)) + sent)
            assert await asyncio.to_thread(begun.wait, 60)
            assert (await second.ask(head % (b"/v1/chat/completions", b"", len(short)) + short)).status == 200
            assert rig.seen[-1].body == b'{"model": "m", "messages": [],"temperature":1}'
            go.set()
            assert (await first.answer()).status == 200
            assert rig.seen[-1].body == long.replace(b'"temperature": 2', b'"temperature": 1').replace(b'"model": "m"', b'"model": ' + model)
        many = b"{%s}" % b",".join(b'"member-%d":1' % number for number in range(20_000))
        assert len(many) > PEEK_BYTES
        for spoilt in (long[:-1], b"[%s]" % long, many):
            assert (await first.ask(head % (b"/v1/chat/completions", b"", len(spoilt)) + spoilt)).status == 400
    assert len(threads) == 6
    assert threading.main_thread() not in threads


@pytest.mark.parametrize(
    ("edits", "members", "status"),
    [
        (None, 20_000, 200),
        (LlmEdits(overrides={"temperature": 1}), 4_000, 200),
        (LlmEdits(overrides={"temperature": 1}), 20_000, 400),
        (LlmEdits(final=[("user", compile_expression("'u'", "llm", {}))]), 20_000, 400),
    ],
    ids=["no edits", "few", "overrides", "final"],
)
@on_rig()
async def test_what_goes_on_unread_is_not_edited_with_too_many_members(rig: Rig, edits: LlmEdits | None, members: int, status: int) -> None:
    """To look for members among very many of them would hold the loop."""
    counting(rig, edits, asked=False)
    value = b"1" if members > 4_096 else b'"%s"' % (b"x" * 100)
    body = b"{%s}" % b",".join(b'"member-%d":%s' % (number, value) for number in range(members))
    assert len(body) > PEEK_BYTES
    answer = await rig.ask(b"POST /other HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    assert answer.status == status
    if status == 200:
        assert rig.seen[-1].body == (body if edits is None else body[:-1] + b',"temperature":1}')
    else:
        assert b"too many members" in answer.body


@on_rig()
async def test_a_long_body_that_is_no_json_is_refused(rig: Rig) -> None:
    counting(rig)
    answer = await rig.ask(asking(b'{"model": "m", "messages": [' + b" " * LONG_BYTES))
    assert answer.status == 400


@on_rig()
async def test_a_long_body_is_read_once_where_the_path_names_its_model(rig: Rig) -> None:
    """The body is written anew with the model of a path of Azure's; what was read of it beside the loop still holds."""
    edits = LlmEdits(transformations=[("user", compile_expression("llmRequest.mark + llmRequest.model", "llm", {}))])
    counting(rig, edits, asked=True)
    read = long_bodies.read_document

    def marked(body: bytes, form: str | None) -> Any:
        document, tokens = read(body, form) or ({}, -1)
        return {**document, "mark": "read once: "}, tokens

    body = body_of(10_000)
    head = b"POST /openai/deployments/gpt/chat/completions HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n"
    with mock.patch.object(long_bodies, "read_document", marked):
        client = await rig.client()
        answer = await client.ask(head % len(body) + body)
    assert answer.status == 200
    sent = json.loads(rig.seen[-1].body)
    assert sent["user"] == "read once: gpt"
    assert sent["messages"] == json.loads(body)["messages"]


@on_rig()
async def test_a_long_body_is_put_into_the_provider_s_dialect_once(rig: Rig) -> None:
    threads = []

    def adapt(body: bytes, streaming: bool) -> bytes:
        threads.append(threading.current_thread())
        return b'{"dialect":true,' + body[1:]

    final = LlmEdits(final=[("user", compile_expression("string(llmRequest.dialect)", "llm", {}))])
    counting(rig, final, asked=False, dialect=Dialect(adapt=adapt))
    client = await rig.client()
    for turns in (10_000, 1):
        body = body_of(turns)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a.test\r\ncontent-length: %d\r\n\r\n" % len(body)
        assert (await client.ask(head + body)).status == 200
        assert json.loads(rig.seen[-1].body) == {"dialect": True, **json.loads(body), "user": "true"}
    assert len(threads) == 2
    assert threads[0] is not threading.main_thread()
    assert threads[1] is threading.main_thread()
