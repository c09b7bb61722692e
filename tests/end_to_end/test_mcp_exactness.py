"""What clients and targets may say in several ways, and what targets say that they should not: ids, fields, cursors,
errors, codings, ends of streams.
"""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from tests.end_to_end.federation_rig import Raw, config, messages
from tests.end_to_end.mcp_bad_targets_rig import JSON, SSE, answer, server, whole
from tests.end_to_end.mcp_stand_in import StandIn, tool

pytestmark = pytest.mark.warm

Say = Callable[[socket.socket, Any], None]


class Rig(NamedTuple):
    """A way to start a gateway in front of a target that answers as `say` does: one target, or beside a good one."""

    one: Callable[[Say], Raw]
    two: Callable[[Say], Raw]


@pytest.fixture(scope="module")
def stand_in() -> Iterator[StandIn]:
    found = StandIn()
    yield found
    found.stop()


@pytest.fixture
def rig(gateway: Callable[..., Any], stand_in: StandIn, upstream: Callable[..., int]) -> Rig:
    def target(say: Say) -> str:
        return f'mcp: {{host: "http://127.0.0.1:{upstream(server(say))}/mcp"}}'

    def two(say: Say) -> Raw:
        return Raw(gateway(config({"odd": target(say), "good": stand_in.target(stand_in.add("good"))})))

    return Rig(lambda say: Raw(gateway(config({"odd": target(say)}))), two)


def body(text: bytes) -> Say:
    """Say this; {id} is the request's."""
    return lambda connection, key: connection.sendall(whole(text.replace(b"{id}", json.dumps(key).encode())))


def error(raw: Raw, name: str = "odd_call") -> dict[str, Any]:
    found = raw.ask("tools/call", name=name)["error"]
    return {"code": found["code"], "message": found["message"]}


# -- ids -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("raw_id", ['"\\u00e9"', '"a\\/b"', "1e3", '"\\u0061"', "7"])
def test_an_id_may_be_written_in_several_ways(rig: Rig, raw_id: str) -> None:
    def say(connection: socket.socket, key: Any) -> None:
        text = json.dumps({"jsonrpc": "2.0", "id": key, "result": {"tools": []}}, ensure_ascii=False)
        connection.sendall(whole(text.encode()))

    raw = rig.two(say)
    text = f'{{"jsonrpc":"2.0","id":{raw_id},"method":"tools/call","params":{{"name":"odd_call"}}}}'
    [found] = messages(raw.http.post("/mcp", content=text))
    assert found["id"] == json.loads(raw_id)
    assert found["result"] == {"tools": []}


@pytest.mark.parametrize("other", ['"7"', "8", "7.5"])
def test_an_id_is_no_other_one(rig: Rig, other: str) -> None:
    raw = rig.two(body(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % other.encode()))
    answered = raw.post({"id": 7, "method": "tools/call", "params": {"name": "odd_call"}})
    assert answered.json()["error"]["message"] == "failed to send message: odd: there was no answer"


def test_a_refused_request_keeps_its_id(rig: Rig) -> None:
    raw = rig.two(body(b""))
    for text, code in (('"jsonrpc":"2.0","id":"a","method":"ping","params":[]', -32602), ('"jsonrpc":"2.1","id":"a","method":"ping"', -32600)):
        found = raw.http.post("/mcp", content=f"{{{text}}}")
        assert (found.status_code, found.json()["id"], found.json()["error"]["code"]) == (400, "a", code)
    new = {"mcp-protocol-version": "2026-07-28"}
    del raw.http.headers["mcp-session-id"]
    for method, status, code in (("no/such", 404, -32601), ("tools/list", 400, -32602)):
        found = raw.http.post("/mcp", content=f'{{"jsonrpc":"2.0","id":4,"method":"{method}","params":[]}}', headers=new)
        assert (found.status_code, found.json()["id"], found.json()["error"]["code"]) == (status, 4, code)


# -- requests --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "accept",
    [["application/json", "text/event-stream"], ["Application/JSON, Text/Event-Stream"], ["text/event-stream;q=0.9,application/json"]],
)
def test_accept_is_read_whole_and_in_any_case(gateway: Callable[..., Any], stand_in: StandIn, accept: list[str]) -> None:
    running = gateway(config({"good": stand_in.target(stand_in.add("good"))}))
    fields = [("content-type", "application/json"), *(("accept", value) for value in accept)]
    opening = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    # httpx has an accept of its own.
    connection = httpx.Client(base_url=running.url)
    connection.headers = httpx.Headers(fields)
    found = connection.post("/mcp", json=opening)
    assert found.text == "mcp: a session id is required; initialize first"


def test_two_revisions_are_none(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    good = stand_in.add("good")
    raw = Raw(gateway(config({"good": stand_in.target(good)})))
    fields = [*raw.http.headers.multi_items(), *(("mcp-protocol-version", one) for one in ("2025-06-18", "2025-03-26"))]
    asked = len(good.seen)
    found = raw.http.post("/mcp", json={"jsonrpc": "2.0", "id": 3, "method": "ping"}, headers=httpx.Headers(fields))
    assert (found.status_code, found.json()["error"]["code"]) == (400, -32020)
    assert found.json()["error"]["message"] == "mcp-protocol-version occurs twice"
    assert len(good.seen) == asked


def test_no_cursor_may_be_said(rig: Rig) -> None:
    raw = rig.two(body(b'{"jsonrpc":"2.0","id":{id},"result":{"tools":[{"name":"x"}]}}'))
    assert [one["name"] for one in raw.ask("tools/list", cursor=None)["result"]["tools"]] == ["odd_x", "good_call"]
    assert raw.ask("tools/list", cursor="x")["error"]["code"] == -32602


@pytest.mark.parametrize("cursor", ["", "same"])
def test_a_cursor_that_leads_nowhere_ends_a_list(gateway: Callable[..., Any], stand_in: StandIn, cursor: str) -> None:
    pages = stand_in.add("pages", results={"tools/list": {"tools": [tool("x")], "nextCursor": cursor}})
    raw = Raw(gateway(config({"odd": stand_in.target(pages), "good": stand_in.target(stand_in.add("good"))})))
    raw.ask("tools/list")
    assert len(pages.asked("tools/list")) == (2 if cursor else 1)


def test_a_completion_for_what_nobody_has(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    servers = [stand_in.add(name, capabilities={"prompts": {}}, results={"prompts/list": {"prompts": []}}) for name in "ab"]
    raw = Raw(gateway(config({one.name: stand_in.target(one) for one in servers}, "  prefixMode: never\n")))
    argument = {"name": "x", "value": ""}
    found = raw.ask("completion/complete", ref={"type": "ref/prompt", "name": "no"}, argument=argument)
    assert found["error"]["message"] == "Unknown prompt: no"
    found = raw.ask("completion/complete", ref={"type": "ref/resource", "uri": "no://"}, argument=argument)
    assert found["error"]["message"] == "Unknown resource: no://"


def test_an_error_about_nothing_is_taken(rig: Rig) -> None:
    raw = rig.two(body(b""))
    for text in ('{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}', '{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}'):
        assert raw.http.post("/mcp", content=text).status_code == 202


def test_a_session_that_is_gone_may_be_ended(rig: Rig) -> None:
    for raw in (rig.one(body(b"")), rig.two(body(b""))):
        assert raw.http.delete("/mcp").is_success
        assert raw.http.delete("/mcp").status_code == 200
        assert raw.http.delete("/mcp", headers={"mcp-session-id": "nobody"}).status_code == 200
        assert raw.post({"id": 1, "method": "ping"}).status_code == 404


# -- errors of targets -----------------------------------------------------------------------------------------------------
ODD_ERRORS = {
    '{"code":"abc","message":"bad"}': (-32603, "odd: bad"),
    '{"code":true,"message":"bad"}': (-32603, "odd: bad"),
    '{"code":-5}': (-5, "odd: the target gave an error without a message"),
    "{}": (-32603, "odd: the target gave an error without a message"),
}


@pytest.mark.parametrize("odd", ODD_ERRORS)
def test_odd_errors_in_a_list_of_all(rig: Rig, odd: str) -> None:
    raw = rig.two(body(b'{"jsonrpc":"2.0","id":{id},"error":%b}' % odd.encode()))
    found = raw.ask("tools/list")["error"]
    assert (found["code"], found["message"]) == ODD_ERRORS[odd]


@pytest.mark.parametrize("text", ['{"jsonrpc":"2.0","id":null,"error":{"code":-9,"message":"bad"}}', '{"jsonrpc":"2.0","error":{"code":-9,"message":"bad"}}'])
def test_an_error_without_an_id_is_about_the_request_that_it_answers(rig: Rig, text: str) -> None:
    assert error(rig.two(body(text.encode()))) == {"code": -9, "message": "bad"}


def test_a_refusal_tells_its_reason(rig: Rig) -> None:
    text = b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"not today"}}'
    raw = rig.two(lambda connection, _: connection.sendall(whole(text, JSON.replace(b"200 OK", b"400 Bad"))))
    assert error(raw) == {"code": -32600, "message": "odd: not today"}
    raw = rig.two(lambda connection, _: connection.sendall(whole(b"no", JSON.replace(b"200 OK", b"401 No"))))
    assert error(raw) == {"code": -32603, "message": "failed to send message: odd: status 401"}


@pytest.mark.parametrize("rules", ["", "  policies: {mcpAuthorization: {rules: ['true']}}\n"])
def test_a_rule_changes_nothing_about_a_refusal(gateway: Callable[..., Any], upstream: Callable[..., int], rules: str) -> None:
    refusal = b"HTTP/1.1 401 No\r\ncontent-type: text/plain\r\nwww-authenticate: Bearer x=1\r\ncontent-length: 4\r\n\r\nnope"
    port = upstream(server(lambda connection, _: connection.sendall(refusal)))
    raw = Raw(gateway(config({"odd": f'mcp: {{host: "http://127.0.0.1:{port}/mcp"}}'}, rules)))
    found = raw.post({"id": 1, "method": "tools/call", "params": {"name": "call"}})
    assert (found.status_code, found.headers["www-authenticate"], found.text) == (401, "Bearer x=1", "nope")


def test_a_revision_that_is_none(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    servers = [stand_in.add(name, says={"protocolVersion": version}) for name, version in (("a", None), ("b", "2025-03-26"))]
    raw = Raw(gateway(config({one.name: stand_in.target(one) for one in servers})))
    assert messages(raw.opened)[0]["result"]["protocolVersion"] == "2025-03-26"


# -- answers ---------------------------------------------------------------------------------------------------------------
def test_packed_answers_are_unpacked(rig: Rig) -> None:
    def say(connection: socket.socket, key: Any) -> None:
        packed = gzip.compress(answer(key, {"content": ["x" * 100_000]}))
        connection.sendall(whole(packed, JSON + b"content-encoding: gzip\r\n"))

    def stream(connection: socket.socket, key: Any) -> None:
        packed = gzip.compress(b"data: " + answer(key, {"content": ["y"]}) + b"\n\n")
        connection.sendall(SSE.replace(b"connection", b"content-encoding: gzip\r\nconnection") + packed)

    for make, name in ((rig.one, "call"), (rig.two, "odd_call")):
        assert make(say).ask("tools/call", name=name)["result"] == {"content": ["x" * 100_000]}
        assert make(stream).ask("tools/call", name=name)["result"] == {"content": ["y"]}


def test_a_packed_answer_that_is_cut_short(rig: Rig) -> None:
    packed = gzip.compress(b"x" * 1000)[:-5]
    raw = rig.two(lambda connection, _: connection.sendall(whole(packed, JSON + b"content-encoding: gzip\r\n")))
    assert error(raw) == {"code": -32603, "message": "failed to send message: odd: upstream answer broke off: the compressed response ends too early"}


LAST = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"the \\"result\\""}}\n\n'
ENDS: dict[str, tuple[bytes, list[str]]] = {
    "nothing": (b"", ["error"]),
    "a note": (LAST, ["method", "error"]),
    "an answer and a note": (b"data: {answer}\n\n" + LAST, ["result", "method"]),
    "no blank line": (b"data: {answer}", ["result"]),
    "half an answer": (b'data: {"jsonrpc":"2.0","id":', ["error"]),
    "of another request": (b'data: {"jsonrpc":"2.0","id":"x","result":{}}\n\n', ["result", "error"]),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_stream_that_ends_has_an_answer(rig: Rig, end: str) -> None:
    text, kinds = ENDS[end]
    raw = rig.one(lambda connection, key: connection.sendall(SSE + text.replace(b"{answer}", answer(key, {}))))
    found = messages(raw.post({"id": 5, "method": "tools/call", "params": {"name": "call"}}))
    assert [next(kind for kind in ("method", "result", "error") if kind in one) for one in found] == kinds
    if kinds[-1] == "error":
        assert (found[-1]["id"], found[-1]["error"]["message"]) == (5, "upstream stream ended without an answer")


# -- servers that ask ------------------------------------------------------------------------------------------------------
def test_a_server_takes_its_question_back(gateway: Callable[..., Any], stand_in: StandIn) -> None:
    asks = [
        {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "reason": "never mind"}},
        {"jsonrpc": "2.0", "id": "a_b", "method": "elicitation/create", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a_b"}},
    ]
    odd = stand_in.add("odd", before={"tools/call": asks})
    raw = Raw(gateway(config({"odd": stand_in.target(odd), "good": stand_in.target(stand_in.add("good"))})))
    found = messages(raw.post({"id": 1, "method": "tools/call", "params": {"name": "odd_call"}}))
    assert found[1]["params"] == {"requestId": found[0]["id"], "reason": "never mind"}
    assert found[3]["params"]["requestId"] == found[2]["id"] != "a_b"
