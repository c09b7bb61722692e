"""Tasks of a process under ids that lead back to its worker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.backend.mcp.federation.shared_process import with_task_prefix, with_token, without_task_prefix
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse

PREFIX = "w3~"


def message(method: str, **params: Any) -> RpcMessage:
    return parse(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_process_hears_of_its_tasks_by_its_own_ids(method: str) -> None:
    assert without_task_prefix(message(method, taskId="w3~abc"), PREFIX).name == "abc"
    for other in ("abc", "w4~abc", "x+w3~abc"):
        assert without_task_prefix(message(method, taskId=other), PREFIX).name == other


def test_of_a_subscription_only_its_own_tasks_are_left() -> None:
    wanted = {"taskIds": ["w3~a", "w4~b", "c", 5], "toolsListChanged": True}
    found = without_task_prefix(message("subscriptions/listen", notifications=wanted), PREFIX).decoded_params()
    assert found == {"notifications": {"taskIds": ["a"], "toolsListChanged": True}}
    for same in (message("subscriptions/listen", notifications={"toolsListChanged": True}),
                 message("tools/call", name="x", arguments={"taskId": "w3~a"})):  # fmt: skip
        assert without_task_prefix(same, PREFIX) is same


def test_clients_hear_of_them_with_the_mark() -> None:
    begun = json.loads(with_task_prefix(b'{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"a","ttlMs":1.0}}', PREFIX))
    assert begun["result"]["taskId"] == "w3~a"
    told = json.loads(with_task_prefix(b'{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"a","status":"working"}}', PREFIX))
    assert told["params"] == {"taskId": "w3~a", "status": "working"}
    agreed = with_task_prefix(b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged",'
                    b'"params":{"notifications":{"taskIds":["a","b"]}}}', PREFIX)  # fmt: skip
    assert json.loads(agreed)["params"] == {"notifications": {"taskIds": ["w3~a", "w3~b"]}}


@pytest.mark.parametrize("text", [
    b"taskId", b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"taskId"}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"\\"taskId\\""}]}}',
    b'{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":5}}',
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":{"taskId":"a"}}}',
])  # fmt: skip
def test_what_names_no_task_stays(text: bytes) -> None:
    assert with_task_prefix(text, PREFIX) == text


def test_progress_is_told_under_the_clients_token() -> None:
    text = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"gw-1","progress":1}}'
    assert json.loads(with_token(text, 7))["params"]["progressToken"] == 7
    assert with_token(b"?", 7) == b"?"
