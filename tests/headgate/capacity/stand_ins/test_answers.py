"""What the built-in peers say is what clients of these APIs read."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from headgate.capacity.stand_ins.answers import ModelAnswers, completions, messages, responses, rpc_answer
from headgate_engine.peek.delta import DeltaPeek
from headgate_engine.sse.decode import SseDecoder


def body(answer: bytes) -> bytes:
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert f"content-length: {len(rest)}".encode() in head
    return rest


@pytest.mark.parametrize(("form", "made"), [("completions", completions), ("messages", messages), ("responses", responses)])
def test_streams_bring_their_tokens(form: str, made: Callable[[int], ModelAnswers]) -> None:
    answers = made(7)
    decoder, peek = SseDecoder(), DeltaPeek(form)
    data = b"".join(part for event in answers.events for part in event.split(b"\r\n")[1::2])
    events = decoder.decode(data)
    said = [peek.read(event.data) for event in events]
    assert sum(one == ("text", b'"word "') for one in said) == 7
    assert json.loads(body(answers.whole))["usage"]
    if form != "completions":
        assert all(json.loads(event.data)["type"] == event.event for event in events)
    else:
        assert events[-1].data == b"[DONE]"


def rpc(method: str, **params: object) -> dict:
    answer = rpc_answer(b"POST", json.dumps({"jsonrpc": "2.0", "id": 5, "method": method, "params": params}).encode())
    found: dict = json.loads(body(answer))
    assert found["id"] == 5
    return found


def test_the_server_of_tools() -> None:
    assert rpc("initialize", protocolVersion="2025-03-26")["result"]["protocolVersion"] == "2025-03-26"
    assert [tool["name"] for tool in rpc("tools/list")["result"]["tools"]] == ["echo"]
    assert rpc("tools/call", name="echo", arguments={"text": "hi"})["result"]["content"][0]["text"] == "hi"
    assert rpc("ping")["result"] == {}
    assert rpc("other")["error"]["code"] == -32601


@pytest.mark.parametrize(("method", "sent", "status"), [
    (b"GET", b"", 405), (b"DELETE", b"", 200), (b"POST", b'{"jsonrpc":"2.0","method":"notifications/initialized"}', 202),
    (b"POST", b"no", 400), (b"POST", b"[]", 400), (b"POST", b'{"id":1,"method":"tools/call","params":["a"]}', 400),
])  # fmt: skip
def test_what_is_no_call(method: bytes, sent: bytes, status: int) -> None:
    assert rpc_answer(method, sent).startswith(b"HTTP/1.1 %d " % status)
