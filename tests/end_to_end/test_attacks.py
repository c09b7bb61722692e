"""What a client may try against policies: header injection through expressions, expensive patterns and expressions."""

from __future__ import annotations

import threading
import time
from typing import Any
from urllib.parse import quote

import pytest
from tests.end_to_end.asking import ask

pytestmark = pytest.mark.warm

EVIL = ("a\r\nx-evil: 1", "a\nx-evil: 1", "a\rx-evil: 1", "a\x00b", "a\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n", "\x7f")
INJECTED = """
transformations:
  request:
    set:
      x-from-query: 'url.decode(request.uri.query("v")[0])'
      x-from-json: 'json(url.decode(request.uri.query("j")[0])).v'
      ':path': '"/p/" + default(url.decode(request.uri.query("v")[0]), "")'
      ':authority': 'url.decode(request.uri.query("v")[0])'
  response:
    set: {x-back: 'url.decode(request.uri.query("v")[0])'}
    add: {x-more: 'json(url.decode(request.uri.query("j")[0])).v'}
"""


def test_no_expression_splits_a_message(policies: Any) -> None:
    import json

    running = policies(INJECTED)
    for text in EVIL:
        query = f"/x?v={quote(text, safe='')}&j={quote(json.dumps({'v': text}), safe='')}"
        answer = ask(running, path=query)
        assert answer.status == 200, text
        assert "x-evil" not in {name.lower() for name in answer.headers}
        assert answer.headers["x-back"] is None
        assert answer.headers["x-more"] is None
        for name in ("x-evil", "x-from-query", "x-from-json"):
            assert answer.got(name) == [], (name, text)
        assert answer.seen["path"] == query, "a path that cannot be is not taken"
        assert answer.got("host") == ["a.test"]
    fine = ask(running, path="/x?v=ok&j=" + quote('{"v":"fine"}'))
    assert (fine.got("x-from-query"), fine.got("x-from-json"), fine.seen["path"]) == (["ok"], ["fine"], "/p/ok")
    back = policies("transformations: {response: {set: {x-back: 'url.decode(request.uri.query(\"v\")[0])'}}}")
    assert ask(back, path="/x?v=ok").headers["x-back"] == "ok"


def test_direct_answers_and_redirects_are_not_split(policies: Any, gateway: Any) -> None:
    running = policies("""
directResponse:
  status: 200
  bodyExpression: 'url.decode(request.uri.query("v")[0])'
  headers: {x-echo: 'url.decode(request.uri.query("v")[0])', x-fixed: '"y"'}
""")
    for text in EVIL:
        answer = ask(running, path=f"/x?v={quote(text, safe='')}")
        assert (answer.status, answer.body.decode(), answer.headers["x-fixed"]) == (200, text, "y")
        assert answer.headers["x-echo"] is None
        assert answer.headers["x-evil"] is None
    redirect = policies("requestRedirect: {scheme: https}")
    answer = ask(redirect, path="/a%0d%0ax-evil:%201?b=%0d%0ac")
    assert answer.headers["location"] == "https://a.test/a%0d%0ax-evil:%201?b=%0d%0ac"


EXPENSIVE = {
    "a pattern": 'request.headers["x-long"].matches("^(a+)+$") || true',
    "another one": 'request.headers["x-long"].matches("(a|aa)*b") || true',
    "replacing": 'size(request.headers["x-long"].regexReplace("(.*a){20}", "x")) > 0 || true',
    "loops in loops": 'request.headers["x-long"].split("").all(a, request.headers["x-long"].split("").all(b, '
    'request.headers["x-long"].split("").all(c, a == b || b == c || c == a)))',
    "texts that grow": '[1,2,3,4,5,6,7,8].map(a, [1,2,3,4,5,6,7,8].map(b, [1,2,3,4,5,6,7,8].map(c, '
    'request.headers["x-long"] + request.headers["x-long"]))).size() > 0',
    "deep documents": 'json(request.headers["x-deep"]).size() >= 0 || true',
}


def test_expensive_expressions_hold_nobody_up(policies: Any) -> None:
    """One worker: while these run nothing else does, so each must come to its end soon. Others are answered meanwhile."""
    for name, text in EXPENSIVE.items():
        running = policies("transformations: {request: {set: {x-done: 'string(" + text.replace("'", "''") + ")'}}}")
        answers: list[int] = []

        def attack(running: Any = running, answers: list[int] = answers) -> None:
            for _ in range(3):
                headers = {"x-long": "a" * 20_000 + "!", "x-deep": "[" * 20_000}
                answers.append(ask(running, headers=headers).status)

        thread = threading.Thread(target=attack)
        thread.start()
        deadline = time.monotonic() + 60
        while thread.is_alive():
            assert ask(running, headers={"x-long": "aa", "x-deep": "[]"}).status == 200, name
            assert time.monotonic() < deadline, name
        thread.join()
        assert answers == [200] * 3, name


def test_expensive_route_patterns(gateway: Any, echo: int) -> None:
    running = gateway(f"""
gateways: {{default: {{port: {{port}}}}}}
routes:
- matches:
  - {{path: {{regex: "/(a+)+"}}}}
  - {{path: {{regex: "/(a|aa)*b"}}}}
  - {{path: {{pathPrefix: /h}}, headers: [{{name: x-long, value: {{regex: "(a*)*c"}}}}]}}
  backends: [{{host: "127.0.0.1:{echo}"}}]
""")
    for path in ("/" + "a" * 7_000 + "!", "/" + "a" * 7_000 + "c", "/h"):
        assert ask(running, path=path, headers={"x-long": "a" * 20_000}).status == 404
    assert ask(running, path="/" + "a" * 7_000).status == 200
