"""Tasks of revision 2026-07-28 (extension `io.modelcontextprotocol/tasks`), and what becomes of tasks between revisions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.end_to_end.federation_rig import Raw, asking, children
from tests.end_to_end.mcp_sessions_rig import parent, wait_for
from tests.end_to_end.mcp_telemetry_rig import lines
from tests.end_to_end.modern_rig import (
    META,
    SPACE,
    Listening,
    Modern,
    Started,
    config,
    messages,
    process,
    remote,
    server,
)
from tests.end_to_end.processes import kill

pytestmark = pytest.mark.warm

__all__ = ["server"]
EXTENSION = SPACE + "tasks"
ABLE = {**META, SPACE + "clientCapabilities": {"elicitation": {}, "extensions": {EXTENSION: {}}}}
ENDED = ("completed", "failed", "cancelled")


class Tasks:
    """A client that has tasks. Each request has a connection of its own: any worker may get it."""

    def __init__(self, running: Any, prefix: str = "") -> None:
        self.running, self.prefix = running, prefix

    def post(self, method: str, **params: Any) -> httpx.Response:
        return Modern(self.running).post(method, ABLE, **params)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return dict(Modern(self.running).ask(method, ABLE, **params)["result"])

    def begin(self, tool: str, **arguments: Any) -> str:
        found = self.ask("tools/call", name=self.prefix + tool, arguments=arguments)
        assert found["resultType"] == "task", found
        return str(found["taskId"])

    def until(self, task: str, *statuses: str) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def there() -> bool:
            found.update(self.ask("tasks/get", taskId=task))
            return found["status"] in (statuses or ENDED)

        wait_for(there)
        assert found["taskId"] == task
        return found

    def unknown(self, method: str, task: str) -> None:
        answer = self.post(method, taskId=task, **({"inputResponses": {}} if method == "tasks/update" else {}))
        # What a process says has no status of its own.
        assert answer.status_code in (200, 400)
        error = messages(answer)[-1]["error"]
        assert error["code"] == -32602
        # A process knows no other worker's task by its mark.
        assert re.sub(r"w\d+~", "", error["message"]) == re.sub(r"w\d+~", "", f"Unknown task: {task}")


@pytest.mark.parametrize(("kind", "several", "workers"), [
    ("remote", False, 2), ("remote", True, 2), ("process", False, 1), ("process", False, 2), ("process", True, 2), ("rules", False, 2),
])  # fmt: skip
def test_tasks_lead_back_to_where_they_run(
    kind: str, several: bool, workers: int, gateway: Callable[..., Any], server: Started
) -> None:
    local = kind == "process"
    target = (lambda: process("--only", "new")) if local else (lambda: remote(server("--only", "new")))
    more = "  policies: {mcpAuthorization: {rules: ['true']}}\n" if kind == "rules" else ""
    running = gateway(config(more, **({"a": target(), "b": target()} if several else {"a": target()})), workers)
    prefixes = ("a", "b") if several else ("",)
    tasks: dict[str, str] = {}
    for prefix in prefixes:
        client = Tasks(running, f"{prefix}_" if several else "")
        done, stopped = client.begin("slow_compute", seconds=0, label=prefix), client.begin("slow_compute", seconds=60)
        asking_one = client.begin("confirm_delete", filename="x")
        marked = r"(w\d+~)?" if local and workers > 1 else ""
        start = rf"{prefix}\+" if several else ""
        assert all(re.fullmatch(f"{start}{marked}[0-9a-f]{{16}}", one) for one in (done, stopped, asking_one))
        found = client.until(done)
        assert (found["status"], found["result"]["content"][0]["text"]) == ("completed", f"computed {prefix}")
        assert client.ask("tasks/cancel", taskId=stopped) == {"resultType": "complete"}
        assert client.until(stopped)["status"] == "cancelled"
        waiting = client.until(asking_one, "input_required")
        [key] = waiting["inputRequests"]
        answers = {key: {"action": "accept", "content": {"confirm": True}}}
        assert client.ask("tasks/update", taskId=asking_one, inputResponses=answers) == {"resultType": "complete"}
        assert client.until(asking_one)["result"]["content"][0]["text"] == "deleted: True"
        tasks[prefix] = done
    client = Tasks(running)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        for strange in ("nope", "a+nope", "b+nope", "c+x", "w0~x", "w9~x", "a+w1~x"):
            client.unknown(method, strange)
    if several:
        # The other one's task is nobody's.
        plain = {prefix: task.partition("+")[2] for prefix, task in tasks.items()}
        client.unknown("tasks/get", f"b+{plain['a']}")
        client.unknown("tasks/get", f"a+{plain['b']}")
        client.unknown("tasks/get", plain["a"])


def test_a_rule_on_tasks_hides_them(gateway: Callable[..., Any], server: Started) -> None:
    rules = "  policies: {mcpAuthorization: {rules: [\"has(mcp.tool) || mcp.task.target != 'a'\"]}}\n"
    one = remote(server("--only", "new"))
    running = gateway(config(rules, a=one, b=one), 2)
    ours, theirs = Tasks(running, "b_").begin("confirm_delete"), Tasks(running, "a_").begin("confirm_delete")
    client = Tasks(running)
    client.until(ours, "input_required")
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        more = {"inputResponses": {}} if method == "tasks/update" else {}
        answer = client.post(method, taskId=theirs, **more)
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, f"Unknown task: {theirs}")
        assert answer.json()["error"]["code"] == -32602
    refused = client.post("subscriptions/listen", notifications={"taskIds": [theirs]})
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, f"Unknown task: {theirs}")


@pytest.mark.parametrize("kind", ["remote", "process"])
def test_a_subscription_tells_of_its_tasks(kind: str, gateway: Callable[..., Any], server: Started) -> None:
    new = process("--only", "new") if kind == "process" else remote(server("--only", "new"))
    running = gateway(config(a=new, b=new), 2)
    client = Modern(running)

    def begin(prefix: str) -> str:
        found = client.ask("tools/call", ABLE, name=f"{prefix}_confirm_delete", arguments={})["result"]
        return str(found["taskId"])

    task, other = begin("a"), begin("b")
    wait_for(lambda: client.ask("tasks/get", ABLE, taskId=task)["result"]["status"] == "input_required")
    agreed: dict[str, Any] = {}
    for _ in range(20):
        # A process tells of its own tasks: the connection must be one of the worker that has it.
        listening = Listening(client, taskIds=[task, "a+nope"])
        agreed = listening.acknowledged()
        if agreed["taskIds"]:
            break
    assert agreed == {"taskIds": [task]}
    assert client.ask("tasks/cancel", ABLE, taskId=other)["result"] == {"resultType": "complete"}
    assert client.ask("tasks/cancel", ABLE, taskId=task)["result"] == {"resultType": "complete"}
    note = listening.next()
    assert note is not None
    assert note["method"] == "notifications/tasks"
    assert (note["params"]["taskId"], note["params"]["status"]) == (task, "cancelled")


def test_logs_and_series_know_no_tasks_by_their_ids(gateway: Callable[..., Any], server: Started) -> None:
    running = gateway(config(a=remote(server("--only", "new"))), 1, settings="logging: {format: json}")
    client = Tasks(running)
    task = client.begin("slow_compute", seconds=0)
    client.until(task)
    line = lines(running, "tasks/get")[0]
    assert (line["mcp.resource.type"], line["mcp.target"]) == ("task", "a")
    assert task not in running.log()
    series = 'gw_mcp_requests_total{method="tasks/get",resource_type="task",server="a",resource="unknown"'
    assert running.metric(series) >= 1


@pytest.mark.parametrize("several", [False, True])
def test_a_server_with_sessions_has_no_tasks_for_clients_without(
    several: bool, gateway: Callable[..., Any], server: Started
) -> None:
    """A task would end with the session of its request: the server is not asked to begin one."""
    targets = {"a": asking("a"), **({"b": remote(server("--only", "new"))} if several else {})}
    running = gateway(config(**targets))
    client, start = Tasks(running, "a_" if several else ""), "a+" if several else ""
    for more in ({}, {"task": {"ttl": 60000}}):
        found = client.ask("tools/call", name=f"{client.prefix}log", arguments={}, **more)
        assert (found["resultType"], found["content"][0]["text"]) == ("complete", "a: log")
        assert "task" not in found
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        client.unknown(method, f"{start}t+a")
    for method in ("tasks/list", "tasks/result"):
        answer = client.post(method, taskId="t")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize("kind", ["remote", "process", "several"])
def test_a_server_without_sessions_has_no_tasks_for_clients_with(
    kind: str, gateway: Callable[..., Any], server: Started
) -> None:
    """Such a client does not know these tasks: the server is told so, and gives the result itself or says what it needs."""
    one = process("--only", "new") if kind == "process" else remote(server("--only", "new"))
    start = "a_" if kind == "several" else ""
    raw = Raw(gateway(config(a=one, **({"b": asking("b")} if kind == "several" else {})), 2))
    opened = json.loads(raw.opened.text.split("data: ", 1)[1])["result"]["capabilities"]
    assert "tasks" not in opened
    assert EXTENSION not in opened.get("extensions", {})
    for more in ({}, {"task": {"ttl": 60000}}):
        found = raw.ask("tools/call", name=f"{start}slow_compute", arguments={"label": "x"}, **more)["result"]
        assert found == {"content": [{"type": "text", "text": "computed x"}]}
    needs = raw.ask("tools/call", name=f"{start}failing_job", arguments={})["error"]
    assert (needs["code"], needs["data"]) == (-32021, {"requiredCapabilities": {"extensions": {EXTENSION: {}}}})
    for method in ("tasks/get", "tasks/cancel", "tasks/result"):
        error = raw.ask(method, taskId=f"{'a+' if start else ''}x")["error"]
        assert error["code"] == -32601, error


def test_a_killed_worker_takes_the_tasks_of_its_process_with_it(gateway: Callable[..., Any]) -> None:
    running = gateway(config(a=process("--only", "new")), 2)
    client = Tasks(running)
    tasks = [client.begin("slow_compute", seconds=60) for _ in range(8)]  # in the processes of both workers
    kill(parent(children(running, "tests.peers.conformant")[0]))
    running.wait_log("worker restarted")
    answers = [client.post("tasks/get", taskId=task) for task in tasks]
    gone = [messages(one)[-1]["error"]["message"] for one in answers if "error" in messages(one)[-1]]
    assert gone
    assert all(one.startswith("Unknown task: ") for one in gone)
    assert client.until(client.begin("slow_compute", seconds=0))["status"] == "completed"
