"""What `gwctl doctor mcp` says of tools."""

from __future__ import annotations

import json

import pytest
from tests.headgate.cli.doctor_rig import HTML, INITIALIZED, JSON, SSE, answering, message, result

from headgate.cli.doctor_auth import AuthOptions
from headgate.cli.doctor_calls import Examination
from headgate.cli.doctor_mcp import examine_mcp, names_of

WELL = message(200, JSON, INITIALIZED)
TAKEN = message(202, JSON, "")


def walked(*answers: bytes) -> list[dict[str, str]]:
    found = Examination()
    with answering(*answers) as port:
        examine_mcp(f"http://127.0.0.1:{port}/mcp", AuthOptions(), found)
    return found.steps


NO_SESSION = json.dumps({"jsonrpc": "2.0", "error": {"code": -32000, "message": "Mcp-Session-Id header is required"}})


@pytest.mark.parametrize(
    ("answers", "step", "why", "change"),
    [
        ((WELL, TAKEN, message(400, JSON, NO_SESSION)), "first call", "wants a session ID, and has given none", "pass the header mcp-session-id"),
        ((WELL, message(400, "text/plain", "no session")), "first call", "wants a session ID", "pass the header mcp-session-id"),
        ((WELL, message(401, JSON, "")), "first call", "takes initialize, and refuses what follows", "all requests of a session alike"),
        ((message(407, HTML, "<title>Proxy</title>"),), "initialize", "a web page with the title 'Proxy' answers", "a proxy or a login"),
        ((message(429, JSON, '{"error": "slow down"}'),), "initialize", "takes no more requests now: slow down", "wait"),
        ((message(401, JSON, ""), message(404, JSON, "")), "resource", "its 401 names no metadata, and there is none at", "--token-env NAME"),
    ],
)  # fmt: skip
def test_the_first_step_that_fails(answers: tuple[bytes, ...], step: str, why: str, change: str) -> None:
    steps = walked(*answers)
    assert (steps[-1]["step"], steps[-1]["result"]) == (step, "failed")
    assert why in steps[-1]["found"]
    assert change in steps[-1]["change"]
    assert all(one["result"] == "ok" for one in steps[:-1])


def test_what_a_server_says_before_its_answer_is_passed_over() -> None:
    told = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    stream = f"id: 1\ndata: \n\ndata: {told}\n\ndata: {INITIALIZED}\n\n"
    steps = walked(message(200, SSE, stream), TAKEN, message(200, JSON, result(2, tools=[{"name": "echo"}])))
    assert [one["found"] for one in steps] == ["near 1, protocol 2025-06-18", "1 tools: echo"]


def test_tools_are_named() -> None:
    assert names_of([{"name": "wiki_search"}, {"name": "tickets_open"}]) == "wiki_search, tickets_open"
    assert names_of([]) == ""


def test_only_the_first_ones_are_named() -> None:
    assert names_of([{"name": "a"}] * 23).endswith("a, and 3 more")


def test_a_name_does_nothing_to_the_terminal() -> None:
    assert "\x1b" not in names_of([{"name": "a\x1b[2Jb"}, None, {"name": 5}])
