"""What an agent is asked, as the log says it."""

from __future__ import annotations

import json

import pytest
from rig import Rig, on_rig

from headgate_engine.context.request import make_context
from headgate_engine.plan.step import PythonStep, run_step
from headgate_engine.steps.a2a import REST, A2aStep

JSON = ("content-type", "application/json")
CONTINUE = 0


def told(method: str, target: str, headers: tuple[tuple[str, str], ...] = (), body: bytes | None = None) -> object:
    """What the log says was asked for."""
    ctx = make_context(method, target, "a.test", headers, body=body)
    step = A2aStep(1024)
    for _ in range(2):                      # another attempt says it once more
        assert run_step(step, ctx) == CONTINUE
    assert len(ctx.log_field_items) < 2
    return dict(ctx.log_field_items).get("a2a.method")


@pytest.mark.parametrize(("method", "target", "body", "expected"), [
    ("POST", "/", b'{"method": "message/send"}', "message/send"),
    ("POST", "/a2a?x=1", b'{"method": "SendMessage"}', "SendMessage"),
    ("POST", "/tasks", b'{"method": "SendMessage"}', "SendMessage"),
    ("POST", "/tasks/7", b'{"method": "GetTask"}', "GetTask"),
    ("POST", "/", b"{}", "unknown"),
    ("POST", "/", b"{", "unknown"),
    ("POST", "/", None, "unknown"),
    ("PUT", "/", b'{"method": "message/send"}', None),
    ("GET", "/", None, None),
    ("GET", "/.well-known/agent-card.json", None, None),
    ("GET", "/.well-known/agent.json", None, None),
    ("HEAD", "/tasks/1", None, None),
    ("OPTIONS", "*", None, None),
])  # fmt: skip
def test_methods_of_calls(method: str, target: str, body: bytes | None, expected: str | None) -> None:
    assert told(method, target, (JSON,), body) == expected


def test_other_types_are_not_read() -> None:
    assert told("POST", "/", (("content-type", "text/plain"),), b'{"method": "message/send"}') == "unknown"
    assert told("POST", "/", (("content-type", "Application/JSON ; charset=utf-8"),), b'{"method": "x"}') == "x"


@pytest.mark.parametrize("base", ["", "/agents/echo", "/tasks/deep/below"])
@pytest.mark.parametrize("shape", REST, ids="/".join)
def test_methods_of_the_http_binding(shape: tuple[str, ...], base: str) -> None:
    end = "/".join(shape).replace("*", "a1-b2")
    for method, (older, newer) in REST[shape].items():
        for version, target, expected in (
            (None, f"{base}/{end}", older if shape[0] == "v1" else newer),
            (None, f"{base}/v1/{end}", older),
            ("1.0", f"{base}/v1/{end}?a=b", newer),
            ("0.3", f"{base}/{end}", older),
            ("0.3.0", f"{base}/v1/{end}", older),
        ):
            headers = () if version is None else (("a2a-version", version),)
            assert told(method, target, headers) == expected, (method, target, version)
    other = next(one for one in ("DELETE", "GET", "POST") if one not in REST[shape])
    assert told(other, f"{base}/{end}") in (None, "unknown")


def test_upgrades_are_no_calls() -> None:
    ctx = make_context("GET", "/tasks/1", "a.test", ())
    assert run_step(A2aStep(10), ctx) == CONTINUE
    assert ctx.log_field_items == [("a2a.method", "GetTask")]
    with pytest.raises(ValueError, match="negative"):
        A2aStep(-1)


@pytest.mark.parametrize("chunked", [False, True])
@on_rig()
async def test_bodies_are_read_for_the_method_and_go_on(rig: Rig, chunked: bool) -> None:
    told: list[object] = []
    note = PythonStep("note", lambda ctx: told.extend(ctx.log_field_items) or CONTINUE)
    rig.route.request_steps = (A2aStep(64), note)
    for padding in (0, 500):
        body = json.dumps({"method": "message/send", "params": "x" * padding}).encode()
        head = b"POST /p HTTP/1.1\r\nhost: a.test\r\ncontent-type: application/json\r\n"
        if chunked:
            sent = head + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        else:
            sent = head + b"content-length: %d\r\n\r\n%s" % (len(body), body)
        assert (await rig.ask(sent)).body == b"/p " + body
        assert told.pop() == ("a2a.method", "message/send")
