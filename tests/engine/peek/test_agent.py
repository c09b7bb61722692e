"""What is read of A2A messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.peek.agent import MAX_TEXT, CallPeek, OutcomePeek
from headgate_engine.peek.json import PeekError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


@pytest.mark.parametrize(("text", "method"), [
    (b'{"method": "message/send"}', "message/send"),
    (b'{"params": {"method": "inner"}, "method": "outer"}', "outer"),
    (b'{"method": "one", "method": "two"}', "two"),
    (rb'{"method": "a\u002fb\n"}', "a/b\n"),
    (b'{"method": 7}', None),
    (b'{"params": {"method": "inner"}}', None),
    (b'[{"method": "batch"}]', None),
    (b'{"method": "cut', None),
    (b'{"method": "message/send", ', None),
    (b"", None),
    (b"nothing", None),
])  # fmt: skip
def test_the_method_of_a_call(text: bytes, method: str | None) -> None:
    assert CallPeek().method(text) == method


def test_the_method_of_a_beginning() -> None:
    whole = b'{"jsonrpc": "2.0", "method": "SendMessage", "params": {"a": "b"}}'
    told = [CallPeek().method(whole[:n], True) for n in range(len(whole) + 1)]
    first = whole.index(b'",', 25) + 1
    assert told == [None] * first + ["SendMessage"] * (len(whole) + 1 - first)
    # What is no JSON tells nothing, however it begins.
    assert CallPeek().method(b'{"method": "a", nonsense', True) is None


def test_long_methods_are_cut() -> None:
    assert CallPeek().method(json.dumps({"method": "m" * 1000}).encode()) == "m" * MAX_TEXT


@given(JSON, st.text(max_size=20))
def test_the_method_is_that_of_json(params: Any, method: str) -> None:
    text = json.dumps({"params": params, "method": method}).encode()
    assert CallPeek().method(text) == method.encode()[:MAX_TEXT].decode("utf-8", "replace")


@pytest.mark.parametrize(("body", "bare", "failed", "told"), [
    ({"result": {"kind": "task", "status": {"state": "working"}, "contextId": "c"}}, False, False, "success - task working c"),
    ({"result": {"task": {"status": {"state": "working"}, "contextId": "c"}}}, False, False, "success - task working c"),
    ({"result": {"message": {"contextId": "c"}}}, False, False, "success - message - c"),
    ({"result": {}}, False, False, "success - - - -"),
    ({"result": None, "error": {"code": -32001}}, False, False, "error -32001 - - -"),
    ({"result": {"kind": "task"}, "error": None}, False, False, "success - task - -"),
    ({"error": {"code": "x"}}, False, False, "error - - - -"),
    ({"error": {"code": 1.5}}, False, False, "error - - - -"),
    ({"error": {"code": 10**30}}, False, False, "error - - - -"),
    ({"id": 1}, False, False, "unknown - - - -"),
    ([], False, False, "unknown - - - -"),
    ({"task": {"status": {"state": "s"}, "contextId": "c"}}, True, False, "success - task s c"),
    ({"status": {"state": "s"}, "contextId": "c"}, True, False, "success - - s c"),
    ({"title": "not found", "status": 404}, True, True, "error - - - -"),
    ({"error": {"code": 404, "message": "no"}}, True, True, "error 404 - - -"),
    ({"message": "no such task"}, True, True, "error - - - -"),
])  # fmt: skip
def test_the_outcome_of_a_call(body: Any, bare: bool, failed: bool, told: str) -> None:
    found = dict(OutcomePeek().outcome(json.dumps(body).encode(), bare, failed))
    names = ("a2a.response.outcome", "a2a.response.error_code", "a2a.result.kind", "a2a.task.state", "a2a.context.id")
    assert " ".join(str(found.get(name, "-")) for name in names) == told


def test_deep_answers_are_read() -> None:
    deep = b'{"result": {"kind": "task", "metadata": ' + b"[" * 300 + b"]" * 300 + b"}}"
    assert ("a2a.result.kind", "task") in OutcomePeek().outcome(deep)
    with pytest.raises(PeekError):
        OutcomePeek().outcome(b"[" * 600 + b"]" * 600)


@given(JSON)
def test_any_answer_has_an_outcome(body: Any) -> None:
    for bare in (False, True):
        found = OutcomePeek().outcome(json.dumps(body).encode(), bare)
        assert found[0][0] == "a2a.response.outcome"
