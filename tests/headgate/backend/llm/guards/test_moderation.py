from __future__ import annotations

import json
from typing import Any

import pytest
import uvloop
from tests.oracles.guard_rig import Call, Rig, rig

from headgate.backend.llm.guards.compile import CANNOT_TELL, settled
from headgate_engine.context.request import Reply, make_context

TEXT = """
request:
- openAIModeration:
    baseUrl: http://127.0.0.1:{port}/proxy
    model: omni-2
    policies: {backendAuth: {key: sk-secret}, requestHeaderModifier: {set: {openai-project: p1}}}
"""
CHAT = {"messages": [{"role": "system", "content": "one"}, {"role": "tool", "content": "unseen"}, {"role": "user", "content": "two"}]}


async def judged(found: Rig, text: str = TEXT, chat: Any = CHAT) -> Any:
    return await settled(found.guards(text).begin(make_context("POST")).request(json.dumps(chat).encode(), "completions"))


def results(*flags: Any) -> Any:
    return {"id": "m", "model": "omni-2", "results": [{"flagged": flag, "categories": {}} for flag in flags]}


def test_what_is_asked_and_when_it_is_refused() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says(results(False, False))
            assert await judged(found) == json.dumps(CHAT).encode()
            [call] = found.service.calls
            assert isinstance(call, Call)
            assert (call.method, call.target) == ("POST", "/proxy/v1/moderations")
            assert sorted(call.headers) == sorted([
                ("host", f"127.0.0.1:{found.service.port}"), ("content-type", "application/json"),
                ("authorization", "Bearer sk-secret"), ("openai-project", "p1"), ("content-length", str(len(call.body))),
            ])  # fmt: skip
            assert call.json == {"input": ["one", "two"], "model": "omni-2"}
            found.service.says(results(False, True))
            reply = await judged(found)
            assert isinstance(reply, Reply)
            assert reply.status == 403
            assert found.count("Reject", "openAIModeration") == 1
            calls = len(found.service.calls)
            empty = {"messages": [{"role": "user", "content": ""}]}
            assert await judged(found, chat=empty) == json.dumps(empty).encode()
            assert len(found.service.calls) == calls

    uvloop.run(main())


@pytest.mark.parametrize(
    "answer", [{}, [], {"results": []}, results(False), results("no", False), {"results": [1, 2]}, results(False, None)]
)
def test_an_answer_that_cannot_be_read(answer: Any) -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says(answer)
            assert await judged(found) is CANNOT_TELL
            assert await judged(found, TEXT + "    failureMode: failOpen\n") == json.dumps(CHAT).encode()

    uvloop.run(main())


@pytest.mark.parametrize("answer", [results(True), results(True, None), results("no", True, False)])
def test_what_is_flagged_in_a_strange_answer_is_refused_all_the_same(answer: Any) -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says(answer)
            reply = await judged(found, TEXT + "    failureMode: failOpen\n")
            assert isinstance(reply, Reply)
            assert reply.status == 403

    uvloop.run(main())


def test_an_error_of_the_vendor_is_no_pass() -> None:
    async def main() -> None:
        async with rig() as found:
            found.service.says({"error": {"message": "bad key"}}, 401)
            assert await judged(found) is CANNOT_TELL

    uvloop.run(main())
