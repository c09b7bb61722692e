"""Code that a vendor ran in an earlier turn: other vendors read what ran and what it printed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llm_sdk_shapes import shape_faults

from headgate.dialect.llm import history, pairs, ran_code
from headgate.dialect.llm.contract import Options

Json = dict[str, Any]
MADE = "0123456789abcdef01234567_1"
TEXT = "```python\nprint(4)\n```\nOutput:\n```\n4\n```\n"
ERROR = "```python\nprint(4)\n```\nError:\n```\n4\n```\n"


def use(ident: str) -> Json:
    return {"type": "server_tool_use", "id": ident, "name": "code_execution", "input": {"code": "print(4)"}}


def result(ident: str, failed: bool = False) -> Json:
    printed = {"stdout": "" if failed else "4", "stderr": "4" if failed else "", "return_code": int(failed)}
    block = {"type": "code_execution_tool_result", "tool_use_id": ident, "is_error": failed}
    return {**block, "content": {"type": "code_execution_result", **printed, "content": []}}


def item(ident: str) -> Json:
    return {"type": "code_interpreter_call", "id": ident, "status": "completed", "code": "print(4)", "container_id": "c",
            "outputs": [{"type": "logs", "logs": "4"}]}  # fmt: skip


SAID = {"type": "text", "text": "four"}
HISTORIES: dict[str, Json] = {
    "messages": {"max_tokens": 9, "messages": [
        {"role": "user", "content": "2+2"}, {"role": "assistant", "content": [use("srvtoolu_1"), result("srvtoolu_1"), SAID]},
        {"role": "user", "content": "thanks"}]},
    "responses": {"input": [
        {"role": "user", "content": "2+2"}, item("ci_1"), {"role": "assistant", "content": "four"},
        {"role": "user", "content": "thanks"}]},
    "gemini": {"contents": [
        {"role": "user", "parts": [{"text": "2+2"}]},
        {"role": "model", "parts": [
            {"executableCode": {"language": "PYTHON", "code": "print(4)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}}, {"text": "four"}]},
        {"role": "user", "parts": [{"text": "thanks"}]}]},
}  # fmt: skip
CELLS = [(client, upstream) for client, upstream in pairs.PAIRS if client in HISTORIES]


@pytest.mark.parametrize(("client", "upstream"), CELLS)
def test_another_vendor_reads_what_ran(client: str, upstream: str) -> None:
    asked = pairs.PAIRS[client, upstream].request(HISTORIES[client], Options(model="m", vendor="v"))
    assert asked.dropped == ()
    assert shape_faults(upstream, asked.body) == []
    told = json.dumps(asked.body)
    if upstream != "gemini":
        assert json.dumps(TEXT)[1:-1] in told
        assert told.index("print(4)") < told.index("four")
        return
    parts = asked.body["contents"][1]["parts"]
    assert parts == HISTORIES["gemini"]["contents"][1]["parts"]


def test_what_failed_is_told() -> None:
    blocks = [use("srvtoolu_1"), result("srvtoolu_1", failed=True)]
    runs = ran_code.of_blocks(blocks)
    (part,) = ran_code.of_block(blocks[0], runs) or ()
    assert ran_code.text(part) == ERROR
    assert ran_code.for_gemini(part)[1] == {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "4"}}
    assert ran_code.of_block(blocks[1], runs) == []
    assert ran_code.of_block(SAID, runs) is None


def test_code_alone_and_a_result_alone() -> None:
    assert ran_code.text(ran_code.of_parts({"code": "1"}, None)) == "```python\n1\n```\n"
    body = {"contents": [{"parts": [{"text": "a"}]}, {"role": "model", "parts": [
        {"text": "so"}, {"executableCode": {"code": "1"}}]},
        {"role": "model", "parts": [{"codeExecutionResult": {"output": "4"}}, {"text": "b"}]}]}  # fmt: skip
    asked = pairs.PAIRS["gemini", "completions"].request(body, Options(model="m"))
    assert asked.body["messages"][1]["content"] == "so\n```python\n1\n```\n"
    assert asked.dropped == ("contents[2].parts[0]",)


def test_a_vendor_of_the_client_s_format_reads_what_another_one_ran() -> None:
    own = history.messages(HISTORIES["messages"], "anthropic")
    assert own == HISTORIES["messages"]
    turn = {"role": "assistant", "content": [use(f"srvtoolu_{MADE}"), result(f"srvtoolu_{MADE}"), SAID]}
    made = history.messages({"messages": [turn]}, "anthropic")
    assert made["messages"][0]["content"] == [{"type": "text", "text": TEXT}, SAID]
    assert history.responses({"input": [item("ci_1")]}, "openai") == {"input": [item("ci_1")]}
    assert history.responses({"input": [item(f"ci_{MADE}")]}, "openai") == {
        "input": [{"type": "message", "role": "assistant", "content": TEXT}]}  # fmt: skip
