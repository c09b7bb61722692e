"""A client of revision 2026-07-28 in front of servers with sessions that ask it something in the middle of a call."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from mcp import types
from mcp.client import Client
from tests.end_to_end.federation_rig import Raw, children
from tests.end_to_end.mcp_sessions_rig import KEYS, parent, wait_for
from tests.end_to_end.modern_rig import META, NEW, SPACE, Modern, Started, config, messages, process, remote, server
from tests.end_to_end.processes import kill
from tests.end_to_end.sse_targets_rig import peer, sse

pytestmark = pytest.mark.warm

__all__ = ["peer", "server"]
TOOL = "test_input_required_result_elicitation"
ABLE = {**META, SPACE + "clientCapabilities": {"elicitation": {}, "sampling": {}, "roots": {}}}
ADA = {"action": "accept", "content": {"name": "Ada"}}


def able(**capabilities: Any) -> dict[str, Any]:
    return {**META, SPACE + "clientCapabilities": capabilities}


def begun(client: Modern, tool: str = TOOL, **more: Any) -> dict[str, Any]:
    """The result that asks something."""
    found = client.ask("tools/call", ABLE, name=tool, arguments={}, **more)
    assert found["result"]["resultType"] == "input_required", found
    return dict(found["result"])


def answered(result: dict[str, Any], answer: dict[str, Any] = ADA) -> dict[str, Any]:
    return {"requestState": result["requestState"], "inputResponses": dict.fromkeys(result["inputRequests"], answer)}


def refusal(answer: httpx.Response) -> tuple[int, int, str]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["message"]


def sessions(port: int) -> int:
    return int(httpx.get(f"http://127.0.0.1:{port}/sessions", timeout=60).json()["sessions"])


@pytest.mark.parametrize("kind", ["remote", "aside", "process", "several", "stateless"])
def test_the_official_client_is_asked_everything(kind: str, gateway: Callable[..., Any], server: Started) -> None:
    more = "  statefulMode: stateless\n" if kind == "stateless" else ""
    words = ["--aside"] if kind == "aside" else []
    one = process("--only", "old") if kind == "process" else remote(server("--only", "old", *words))
    others = {"two": process("--only", "new")} if kind == "several" else {}
    start = "one_" if others else ""
    running = gateway(config(more, one=one, **others), 2)

    async def elicit(_context: Any, params: Any) -> Any:
        content = {"name": "Ada"} if "name" in params.message else {"ok": True, "color": "red"}
        return types.ElicitResult(action="accept", content=content)

    async def sample(_context: Any, _params: Any) -> Any:
        return types.CreateMessageResult(role="assistant", content=types.TextContent(type="text", text="Paris"), model="m")

    async def roots(_context: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///x")])

    async def run() -> list[str]:
        async with Client(
            f"{running.url}/mcp", mode=NEW, elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=roots
        ) as client:
            names = ("elicitation", "sampling", "list_roots", "multi_round", "multiple_inputs")
            found = [
                (await client.call_tool(f"{start}test_input_required_result_{name}", {})).content[0].text for name in names
            ]
            prompt = await client.get_prompt(f"{start}test_input_required_result_prompt", {})
            return [*found, prompt.messages[0].content.text]

    name, capital, root, rounds, everything, prompt = asyncio.run(run())
    assert (name, capital, root, rounds) == ("Hello, Ada!", "Paris", "file:///x", "All rounds are done")
    assert set(json.loads(everything)) == {"user_name", "greeting", "client_roots"}
    assert prompt.startswith("Context:")


def test_a_server_of_the_official_sdk_over_sse_asks(gateway: Callable[..., Any], peer: Callable[..., Any]) -> None:
    _, port = peer("sse", "old")
    client = Modern(gateway(config(one=sse(port)), 2))
    first = client.ask("tools/call", able(sampling={}), name="sample", arguments={})["result"]
    said = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}
    found = client.ask("tools/call", able(sampling={}), name="sample", arguments={}, **answered(first, said))
    assert found["result"]["content"][0]["text"] == "old heard hi"


@pytest.mark.parametrize("kind", ["remote", "process", "several"])
def test_any_worker_brings_the_answer(kind: str, gateway: Callable[..., Any], server: Started) -> None:
    port = server("--only", "old")
    one = process("--only", "old") if kind == "process" else remote(port)
    start = "one_" if kind == "several" else ""
    running = gateway(config(KEYS, one=one, **({"two": one} if kind == "several" else {})), 2)

    def use(number: int) -> str:
        meta, name = {**ABLE, "progressToken": number}, f"{start}test_input_required_result_multi_round"
        asked: dict[str, Any] = {}
        for _ in range(3):
            client = Modern(running)  # a connection of its own: one of both workers
            client.http.headers["authorization"] = "Bearer ada"
            client.id = number * 10
            found = client.ask("tools/call", meta, name=name, arguments={}, **asked)["result"]
            if found["resultType"] == "complete":
                return str(found["content"][0]["text"])
            [question] = found["inputRequests"].values()
            assert question["method"] == "elicitation/create"
            asked = answered(found)
        raise AssertionError(found)

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert set(pool.map(use, range(12))) == {"All rounds are done"}
    wait_for(lambda: not children(running, "tests.peers.conformant") if kind == "process" else sessions(port) == 0)
    running.wait_metric('gw_mcp_requests_total{method="tools/call"', 36)      # each request is counted once


def test_an_answer_is_good_for_its_request_and_its_client_only(gateway: Callable[..., Any], server: Started) -> None:
    one = remote(server("--only", "old"))
    running = gateway(config(KEYS, one=one, two=one), 2)

    def client(key: str) -> Modern:
        found = Modern(running)
        found.http.headers["authorization"] = f"Bearer {key}"
        return found

    def repeated(key: str, name: str = f"one_{TOOL}", arguments: dict[str, Any] | None = None, **more: Any) -> httpx.Response:
        return client(key).post("tools/call", ABLE, name=name, arguments=arguments or {}, **more)

    first = begun(client("ada"), f"one_{TOOL}")
    good = answered(first)
    ended = (400, -32602, "requestState belongs to a call that has ended; call again without it")
    other = (400, -32602, "requestState belongs to another request")
    none = (400, -32602, "requestState does not belong to this backend")
    for _ in range(4):
        assert refusal(repeated("bob", **good)) == ended, "somebody else learns nothing of it"
        assert refusal(repeated("ada", arguments={"x": 1}, **good)) == other
        assert refusal(repeated("ada", f"two_{TOOL}", **good)) == other
        for state in (good["requestState"][:-1], "gwr.x", "theirs"):
            assert refusal(repeated("ada", **{**good, "requestState": state})) == none
    # Answers to nothing that was asked: the question stays, with what brings the call back.
    again = begun(client("ada"), f"one_{TOOL}", **{**good, "inputResponses": {"other": ADA, next(iter(good["inputResponses"])): 5}})
    assert again["inputRequests"] == first["inputRequests"]
    assert again["requestState"] != first["requestState"]
    assert refusal(repeated("ada", **good)) == ended, "a state is good once"
    found = messages(repeated("ada", **answered(again)))[-1]
    assert found["result"]["content"][0]["text"] == "Hello, Ada!"
    assert refusal(repeated("ada", **answered(again))) == ended


@pytest.mark.parametrize(("capabilities", "method", "heard"), [
    ({}, "elicitation/create", "the client cannot be asked: it has no elicitation"),
    ({"roots": {}}, "sampling/createMessage", "the client cannot be asked: it has no sampling"),
    ({"elicitation": {"url": {}}}, "elicitation/create", "the client has no elicitation of mode form"),
    ({"elicitation": {"form": {}}}, "elicitation/create", None),
    ({"sampling": {}}, "tools/call", "method not found: tools/call"),
])  # fmt: skip
def test_who_cannot_be_asked_is_not(
    capabilities: dict[str, Any], method: str, heard: str | None, gateway: Callable[..., Any]
) -> None:
    """The server gets an error for its question, and goes on with it."""
    command = json.dumps(["-c", SCRIPT, method])
    running = gateway(config(one=f"stdio: {{cmd: python3, args: {command}}}"))
    found = Modern(running).ask("tools/call", able(**capabilities), name="ask", arguments={})["result"]
    if heard is None:
        assert found["resultType"] == "input_required"
        return
    error = json.loads(found["content"][0]["text"])["error"]
    assert error == {"code": -32602 if "mode" in heard else -32601, "message": heard}


# Asks without a look at what the client can do; pings it, too.
SCRIPT = """
import json, sys
def say(**found): print(json.dumps({"jsonrpc": "2.0", **found}), flush=True)
for line in sys.stdin:
    got = json.loads(line)
    if got.get("method") == "initialize":
        say(id=got["id"], result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
    elif got.get("method") == "server/discover":
        say(id=got["id"], error={"code": -32601, "message": "Method not found"})
    elif got.get("method") == "tools/call":
        call = got["id"]
        say(id="p", method="ping")
    elif got.get("id") == "p":
        assert got["result"] == {}
        say(id=7, method=sys.argv[1], params={"message": "m", "requestedSchema": {}, "messages": [], "maxTokens": 1})
    elif got.get("id") == 7 and sys.argv[2:] != ["silent-server"]:
        say(id=call, result={"content": [{"type": "text", "text": json.dumps(got)}]})
"""


@pytest.mark.parametrize("kind", ["remote", "process"])
def test_a_call_that_nobody_comes_back_for_ends(kind: str, gateway: Callable[..., Any], server: Started) -> None:
    port = server("--only", "old")
    one = process("--only", "old") if kind == "process" else remote(port)
    running = gateway(config(one=one), 1, settings="mcp: {sessionTtl: 1s}")
    client = Modern(running)
    first = begun(client)
    running.wait_log("call ended: no answer of the client")
    wait_for(lambda: not children(running, "tests.peers.conformant") if kind == "process" else sessions(port) == 0)
    status, code, text = refusal(client.post("tools/call", ABLE, name=TOOL, arguments={}, **answered(first)))
    assert (status, code) == (400, -32602)
    assert text == "requestState has expired: answers must come within 1 s; call again without it"
    assert begun(client)["inputRequests"]


@pytest.mark.http1(reason="httpx sends no RST_STREAM when a response is closed")
def test_a_client_that_leaves_ends_its_call(gateway: Callable[..., Any]) -> None:
    command = json.dumps(["-c", SCRIPT, "elicitation/create", "silent-server"])
    running = gateway(config(one=f"stdio: {{cmd: python3, args: {command}}}"))
    client = Modern(running)
    first = client.ask("tools/call", ABLE, name="ask", arguments={})["result"]
    assert len(children(running, "silent-server")) == 1, "it waits for the answer"
    # The server has the answer and says nothing; the client gives up.
    client.http.timeout = httpx.Timeout(10, read=0.3)
    with pytest.raises(httpx.ReadTimeout):
        client.post("tools/call", ABLE, name="ask", arguments={}, **answered(first))
    wait_for(lambda: not children(running, "silent-server"))


@pytest.mark.parametrize("kind", ["remote", "process"])
def test_a_worker_killed_while_a_call_waits(kind: str, gateway: Callable[..., Any], server: Started) -> None:
    one = process("--only", "old") if kind == "process" else remote(server("--only", "old"))
    running = gateway(config(one=one), 2)
    first = [begun(Modern(running)) for _ in range(20)]  # at both workers
    pids = running.worker_pids()
    killed = parent(children(running, "tests.peers.conformant")[0]) if kind == "process" else pids[0]
    kill(killed)
    running.wait_log("worker restarted")
    ends: list[str] = []
    for one_first in first:
        answer = Modern(running).post("tools/call", ABLE, name=TOOL, arguments={}, **answered(one_first))
        if answer.status_code == 200:
            ends.append(messages(answer)[-1]["result"]["content"][0]["text"])
        else:
            assert refusal(answer) == (400, -32602, "requestState belongs to a call that has ended; call again without it")
            ends.append("ended")
    assert "ended" in ends
    assert set(ends) <= {"ended", "Hello, Ada!"}
    # The next requests simply work.
    assert all(begun(Modern(running)) for _ in range(4))


# A server of revision 2026-07-28 that does not look at what its client can do.
HEEDLESS = """
import json, sys
def say(**found): print(json.dumps({"jsonrpc": "2.0", **found}), flush=True)
rounds = 0
for line in sys.stdin:
    got = json.loads(line)
    params = got.get("params", {})
    if got.get("method") == "server/discover":
        say(id=got["id"], result={"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
    elif got.get("method") != "tools/call":
        say(id=got["id"], error={"code": -32601, "message": "Method not found"}) if "id" in got else None
    elif params["name"] == "task":
        say(id=got["id"], result={"resultType": "task", "taskId": "1", "status": "working"})
    elif params["name"] == "later" and params.get("requestState") == "once":
        say(id=got["id"], result={"resultType": "complete", "content": [{"type": "text", "text": "now"}]})
    elif params["name"] == "later":
        say(id=got["id"], result={"resultType": "input_required", "requestState": "once"})
    else:
        many = 65 if params["name"] == "many" else 1
        asked = {"method": params["arguments"]["method"], "params": {"messages": [], "maxTokens": 1}}
        say(id=got["id"], result={"resultType": "input_required", "inputRequests": dict.fromkeys(map(str, range(many)), asked)})
"""


@pytest.mark.parametrize("several", [False, True])
def test_a_client_with_a_session_is_asked_only_what_it_can_do(several: bool, gateway: Callable[..., Any]) -> None:
    """The other way round: a server without sessions that wants something its client never said it could do."""
    one = f"stdio: {{cmd: python3, args: {json.dumps(['-c', HEEDLESS])}}}"
    raw = Raw(gateway(config(one=one, **({"two": one} if several else {}))))  # it says that it has sampling
    start = "one_" if several else ""

    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        found = raw.ask("tools/call", name=start + tool, arguments=arguments)
        return dict(found["error"] if "error" in found else found["result"])

    lacking = call("ask", method="elicitation/create")
    assert (lacking["code"], lacking["message"]) == (-32021, "the server needs elicitation")
    assert lacking["data"] == {"requiredCapabilities": {"elicitation": {}}}
    strange = call("ask", method="tools/call")
    assert (strange["code"], strange["message"]) == (-32603, "the server requests something that no client supports: tools/call")
    many = call("many", method="sampling/createMessage")
    assert (many["code"], many["message"]) == (-32603, "the server asks for more than 64 things at once")
    task = call("task")
    assert (task["code"], task["message"]) == (-32603, "the server started a task, which a client with a session cannot track")
    assert call("later")["content"][0]["text"] == "now", "it wanted nothing of the client"
