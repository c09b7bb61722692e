"""Guards on whole requests and replies: order, masks, refusals, failures, headers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop
from tests.oracles.guard_rig import Rig, rig

from headgate.backend.llm.guards import compile as compiled
from headgate.backend.llm.guards import step
from headgate.backend.llm.guards.compile import CANNOT_TELL, settled
from headgate.ir.policy.prompt_guard import REJECTED, PromptGuard, combined
from headgate_engine.context.request import Reply, RequestContext, make_context

Work = Callable[[Rig], Awaitable[None]]
CHAT: Any = {
    "model": "m1",
    "messages": [
        {"role": "system", "content": "Be brief"},
        {"role": "user", "content": [{"type": "text", "text": "Say"}, {"type": "text", "text": "hi"}]},
    ],
}
ANSWER: Any = {"id": "r", "choices": [{"message": {"role": "assistant", "content": text}} for text in ("A", "B")]}
WEBHOOK = "{request: [{webhook: {target: {host: '127.0.0.1:{port}'}}}]}"
OPEN = "{request: [{webhook: {target: {host: '127.0.0.1:{port}'}, failureMode: failOpen}}]}"
REPLIES = "{response: [{webhook: {target: {host: '127.0.0.1:{port}'}}}]}"


def run(work: Work) -> None:
    async def main() -> None:
        async with rig() as found:
            await work(found)

    uvloop.run(main())


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def context(*headers: tuple[str, str]) -> RequestContext:
    ctx = make_context("POST", "/v1/chat/completions", "gw.test", headers)
    ctx.jwt = {"team": "ops"}
    return ctx


async def asked(found: Rig, text: str, body: Any = None, ctx: RequestContext | None = None, form: str = "completions") -> Any:
    call = found.guards(text).begin(ctx or context())
    raw = body if isinstance(body, bytes) else encoded(CHAT if body is None else body)
    return await settled(call.request(raw, form))


async def answered(found: Rig, text: str, body: Any = None) -> Any:
    call = found.guards(text).begin(context())
    return await settled(call.response(encoded(ANSWER if body is None else body), "completions"))


@pytest.mark.parametrize("rule", ["{action: reject, rules: [{pattern: heron}]}", "{action: reject, builtins: [email]}",
                                  "{action: mask, builtins: [email, ssn]}", "{action: mask, rules: [{pattern: 'h.r'}]}",
                                  "{action: mask, builtins: [email], rules: [{pattern: 'o@|<[A-Z]'}]}"])
@pytest.mark.parametrize("text", ["a heron at jo@ex.io", "219-09-9999", "nothing", "broken"])
def test_what_is_long_comes_to_the_same_beside_the_loop(rule: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"{" if text == "broken" else chat(text)
    both = f"{{request: [{{regex: {rule}}}], response: [{{regex: {rule}}}]}}"

    async def work(found: Rig) -> None:
        call = found.guards(both).begin(context())
        short = call.request(body, "completions")
        assert not isinstance(short, Awaitable)
        monkeypatch.setattr(compiled, "LONG_NS", -1)
        long = call.request(body, "completions")
        assert isinstance(long, Awaitable)
        assert await long == short
        reply = encoded({"choices": [{"message": {"content": text}}]}) if text != "broken" else body
        beside = await settled(call.response(reply, "completions"))
        monkeypatch.setattr(compiled, "LONG_NS", 1 << 40)
        assert beside == call.response(reply, "completions")

    run(work)


# -- patterns ------------------------------------------------------------------------------------------------------------
def chat(text: str) -> bytes:
    return encoded({"messages": [{"role": "user", "content": text}]})


def test_a_refusal_is_as_configured() -> None:
    async def work(found: Rig) -> None:
        rule = "regex: {action: reject, rules: [{pattern: '(?i)blue heron', name: birds}]}"
        reply = await asked(found, f"{{request: [{{{rule}}}]}}", chat("A Blue Heron"))
        assert (reply.status, reply.body, reply.headers, reply.reason) == (403, REJECTED.encode(), (), "Guardrail")
        ctx = context()
        own = "rejection: {status: 422, body: no herons, headers: {set: {content-type: text/plain}}}"
        reply = await asked(found, f"{{request: [{{{rule}, {own}}}]}}", chat("A Blue Heron"), ctx)
        assert (reply.status, reply.body, reply.headers) == (422, b"no herons", ((b"content-type", b"text/plain"),))
        assert ("gw.ai.guardrail", "regex: birds") in ctx.log_field_items
        cluster = "{action: Reject, builtins: [Email], response: {message: nope, statusCode: 451}}"
        reply = await asked(found, f"{{request: [{{regex: {cluster}}}]}}", chat("a@b.co"))
        assert (reply.status, reply.body) == (451, b"nope")
        assert found.count("Reject", "regex", "Request") == 3

    run(work)


def test_masks_add_up_and_later_guards_see_them() -> None:
    async def work(found: Rig) -> None:
        text = (
            "{request: [{regex: {builtins: [email]}}, {regex: {matches: [{pattern: 'EMAIL_ADDRESS', name: n}]}},"
            " {webhook: {target: {host: '127.0.0.1:{port}'}}}]}"
        )
        found.service.says({"action": {}})
        body = await asked(found, text, chat("to a@b.co now"))
        assert json.loads(body)["messages"][0]["content"] == "to <<masked>> now"
        assert found.service.calls[0].json["body"]["messages"] == [{"role": "user", "content": "to <<masked>> now"}]
        assert found.count("Mask") == 2
        assert found.count("Allow") == 1

    run(work)


def test_scopes_say_what_a_guard_sees() -> None:
    async def work(found: Rig) -> None:
        call = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"to":"a@b.io"}'}}]}
        body = encoded({"messages": [call, {"role": "tool", "content": "c@d.io"}, {"role": "user", "content": "e@f.io"}]})
        found_one = await asked(found, "{request: [{regex: {builtins: [Email]}}]}", body)
        assert b"a@b.io" in found_one
        assert b"c@d.io" in found_one
        assert b"e@f.io" not in found_one
        scoped = await asked(found, "{request: [{scope: [ToolInput], regex: {builtins: [Email]}}]}", body)
        assert json.loads(scoped)["messages"][0]["tool_calls"][0]["function"]["arguments"] == '{"to":"<EMAIL_ADDRESS>"}'
        assert b"c@d.io" in scoped
        assert b"e@f.io" in scoped

    run(work)


def test_what_asks_nobody_is_answered_at_once() -> None:
    async def work(found: Rig) -> None:
        call = found.guards("{request: [{regex: {builtins: [email, phoneNumber]}}]}").begin(context())
        body = encoded(CHAT)
        assert call.request(body, "completions") is body
        assert b"<PHONE_NUMBER>" in call.request(chat("call (415) 555-2671, ok"), "completions")  # type: ignore[operator]

    run(work)


@pytest.mark.parametrize("form", ["embeddings", "rerank", "count_tokens", "passthrough", "detect", "realtime"])
def test_other_formats_pass(form: str) -> None:
    async def work(found: Rig) -> None:
        rule = "{regex: {action: reject, matches: [{pattern: '.'}]}}"
        call = found.guards(f"{{request: [{rule}], response: [{rule}], streaming: true}}").begin(context())
        assert call.request(b"\x00", form) == b"\x00"
        assert call.response(b"\x00", form) == b"\x00"
        assert call.stream(form) is None

    run(work)


# -- webhooks ------------------------------------------------------------------------------------------------------------
HEADERS = """
request:
- webhook:
    target: {host: "127.0.0.1:{port}"}
    headers: {":path": '"/v2/check"', "x-team": jwt.team, "x-model": llmRequest.model, "x-none": jwt.missing, ":scheme": '"x"'}
    forwardHeaderMatches: [{name: x-tenant, value: {regex: "n.*"}}, {name: content-length, value: {regex: ".*"}}]
response:
- webhook:
    target: {host: "127.0.0.1:{port}"}
    headers: {"x-team": jwt.team, "x-secret": 'request.headers["authorization"]', ":path": jwt.no}
    forwardHeaderMatches: [{name: x-up, value: {exact: "1"}}, {name: traceparent, value: {regex: ".*"}}]
"""


def test_what_a_webhook_is_asked() -> None:
    async def work(found: Rig) -> None:
        found.service.says({"action": {}})
        ctx = context(("x-tenant", "north"), ("x-tenant", "south"), ("x-other", "1"), ("traceparent", "00-client"))
        call = found.guards(HEADERS).begin(ctx)
        body = encoded(CHAT)
        assert await settled(call.request(body, "completions")) is body
        # What happens to the head later must not be seen.
        ctx.request.add("authorization", "Bearer provider-key")
        upstream = [("x-up", "1"), ("x-up", "2"), ("traceparent", "00-upstream"), ("set-cookie", "s")]
        raw = encoded(ANSWER)
        assert await settled(call.response(raw, "completions", upstream)) is raw
        first, second = found.service.calls
        assert (first.method, first.target) == ("POST", "/v2/check")
        assert sorted(first.headers) == sorted([
            ("host", f"127.0.0.1:{found.service.port}"), ("content-type", "application/json"), ("x-tenant", "north"),
            ("x-tenant", "south"), ("x-team", "ops"), ("x-model", "m1"), ("content-length", str(len(first.body))),
        ])  # fmt: skip
        assert first.body == (
            b'{"body":{"messages":[{"role":"system","content":"Be brief"},{"role":"user","content":"Say hi"}]}}'
        )
        assert (second.method, second.target) == ("POST", "/response")
        assert sorted(second.headers) == sorted([
            ("host", f"127.0.0.1:{found.service.port}"), ("content-type", "application/json"), ("x-up", "1"), ("x-up", "2"),
            ("traceparent", "00-client"), ("x-team", "ops"), ("content-length", str(len(second.body))),
        ])  # fmt: skip
        assert second.json == {"body": {"choices": [{"message": one["message"]} for one in ANSWER["choices"]]}}

    run(work)


def test_method_and_authority_can_be_set() -> None:
    async def work(found: Rig) -> None:
        found.service.says({"action": {}})
        headers = """{":method": '"PUT"', ":authority": '"other.test"', "content-type": '"application/x"'}"""
        await asked(found, f"{{request: [{{webhook: {{target: {{host: '127.0.0.1:{{port}}'}}, headers: {headers}}}}}]}}")
        call = found.service.calls[0]
        assert (call.method, call.target, call.header("host")) == ("PUT", "/request", "other.test")
        assert [value for name, value in call.headers if name == "content-type"] == ["application/x"]

    run(work)


PASSES = [{"action": {}}, {"action": {"reason": "fine"}}, {"action": {"reason": None}}]


@pytest.mark.parametrize("answer", PASSES)
def test_a_webhook_that_has_nothing_against_it(answer: Any) -> None:
    async def work(found: Rig) -> None:
        found.service.says(answer)
        assert await asked(found, WEBHOOK) == encoded(CHAT)
        assert await answered(found, REPLIES) == encoded(ANSWER)

    run(work)


def test_a_webhook_masks_text_and_nothing_else() -> None:
    async def work(found: Rig) -> None:
        body = {
            "messages": [
                {"role": "system", "content": "Be brief"},
                {"role": "user", "content": [{"type": "text", "text": "Say"}, {"type": "image_url"}, {"type": "text", "text": "hi"}]},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
                {"role": "tool", "tool_call_id": "1", "content": "42"},
            ]
        }
        told = [("system", "Be brief"), ("user", "Say <masked>"), ("assistant", ""), ("tool", "42")]
        messages = [{"role": role, "content": content} for role, content in told]
        found.service.says({"action": {"body": {"messages": messages}, "reason": "r"}})
        done = json.loads(await asked(found, WEBHOOK, body))
        body["messages"][1]["content"][2]["text"] = "<masked>"  # type: ignore[index]
        assert done == body
        told_choices = [{"message": {"role": "assistant", "content": content}} for content in ("***", "B")]
        found.service.says({"action": {"body": {"choices": told_choices}}})
        done = json.loads(await answered(found, REPLIES))
        assert [one["message"]["content"] for one in done["choices"]] == ["***", "B"]
        assert done["id"] == "r"

    run(work)


def test_a_webhook_refuses_in_its_own_words() -> None:
    async def work(found: Rig) -> None:
        found.service.says({"action": {"body": "blocked by desk 7", "status_code": 451, "reason": "x"}})
        for reply in (await asked(found, WEBHOOK), await answered(found, REPLIES), await asked(found, OPEN)):
            assert isinstance(reply, Reply)
            assert (reply.status, reply.body, reply.headers) == (451, b"blocked by desk 7", ())

    run(work)


ONE = {"role": "system", "content": "Be brief"}
TWO = {"role": "user", "content": "Say hi"}
BAD_ANSWERS: list[Any] = [
    b"oops",
    b"",
    b"[]",
    b"[" * 100_000,
    {},
    {"action": None},
    {"action": []},
    {"action": {"reason": 3}},
    {"action": {"body": "no status"}},
    {"action": {"status_code": 403}},
    {"action": {"body": "x", "status_code": "403"}},
    {"action": {"body": "x", "status_code": True}},
    {"action": {"body": "x", "status_code": 99}},
    {"action": {"body": "x", "status_code": 1000}},
    {"action": {"body": None}},
    {"action": {"body": {}}},
    {"action": {"body": {"choices": []}}},
    {"action": {"body": {"messages": [ONE]}}},
    {"action": {"body": {"messages": [ONE, TWO, TWO]}}},
    {"action": {"body": {"messages": [TWO, ONE]}}},
    {"action": {"body": {"messages": [ONE, None]}}},
    {"action": {"body": {"messages": [ONE, {"role": "user", "content": None}]}}},
    {"action": {"body": {"messages": [ONE, TWO]}, "status_code": 403}},
]


@pytest.mark.parametrize("answer", BAD_ANSWERS, ids=range(len(BAD_ANSWERS)))
def test_an_answer_that_means_nothing_is_a_failure(answer: Any) -> None:
    async def work(found: Rig) -> None:
        found.service.says(answer)
        assert await asked(found, WEBHOOK) is CANNOT_TELL
        assert found.count("FailClosed", "webhook") == 1
        assert await asked(found, OPEN) == encoded(CHAT)
        assert found.count("FailOpen", "webhook") == 1
        assert found.count() == 2

    run(work)


def test_failures_of_the_service() -> None:
    async def work(found: Rig) -> None:
        for broken in (lambda _: None, lambda _: (500, b'{"action":{}}'), lambda _: (404, b""), lambda _: (200, b"x" * 3_000_000)):
            found.service.answer = broken  # type: ignore[assignment]
            assert await asked(found, WEBHOOK) is CANNOT_TELL
            assert await asked(found, OPEN) == encoded(CHAT)
        found.service.port = 1
        assert await asked(found, WEBHOOK) is CANNOT_TELL

    run(work)


def test_a_service_that_says_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(found: Rig) -> None:
        guards = found.guards(WEBHOOK)
        service = guards.entries["request"][0].guard.service  # type: ignore[attr-defined]
        assert service.service.timeout_ms == 10_000
        policies = replace(service.service.remote.policies, request_timeout_ms=50)
        service.service = replace(service.service, remote=replace(service.service.remote, policies=policies))
        found.service.answer = lambda _: 30.0
        assert await settled(guards.begin(context()).request(encoded(CHAT), "completions")) is CANNOT_TELL

    run(work)


def test_a_client_that_leaves_ends_the_call() -> None:
    async def work(found: Rig) -> None:
        found.service.answer = lambda _: 30.0
        task = asyncio.gather(asked(found, WEBHOOK))
        await found.service.came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert found.count() == 0

    run(work)


def test_a_broken_body_is_refused_when_it_must_be_read() -> None:
    async def work(found: Rig) -> None:
        assert await asked(found, "{request: [{regex: {builtins: [email]}}]}", b"{nope") is CANNOT_TELL

    run(work)


def test_guards_of_a_section_run_before_those_of_a_model() -> None:
    async def work(found: Rig) -> None:
        first = found.guards("{request: [{regex: {builtins: [email]}}], streaming: true}").source
        second = found.guards("{request: [{regex: {builtins: [ssn]}}]}").source
        both = combined(first, second)
        assert both is not None
        assert both.request == first.request + second.request
        assert both.streaming
        assert combined(None, second) is second
        assert combined(first, None) is first
        assert combined(None, None) is None
        assert PromptGuard() == PromptGuard()

    run(work)


@pytest.mark.parametrize("nonsense", [42, "text", ("a", "b"), object()])
def test_a_guard_that_returns_nonsense_fails_the_step_which_answers_500(nonsense: object) -> None:
    """What a step that raises comes to: tests/engine/link/test_exchange.py."""

    async def work(found: Rig) -> None:
        guards = found.guards(WEBHOOK)
        (entry,) = guards.entries["request"]
        entry.guard = SimpleNamespace(judge=lambda question: nonsense, kind="webhook", asks=True)
        ctx = context()
        outcome = await settled(guards.begin(ctx).request(encoded(CHAT), "completions"))
        with pytest.raises(TypeError):
            step._taken(ctx, b"", outcome)

    run(work)
