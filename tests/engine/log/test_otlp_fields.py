"""The fields of a request as attributes."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.end_to_end.otlp_rig import attributes_of

from headgate.expr.compile import compile_expression
from headgate_engine.context.request import RequestContext, make_context
from headgate_engine.log.fields import LogFields
from headgate_engine.log.otlp_fields import OtlpFields
from headgate_engine.log.request_fields import MAX_REMOVED


def told(ctx: RequestContext, *, span: bool = False, **options: Any) -> dict[str, Any]:
    encoded = OtlpFields(**options, span=span).attributes(ctx)
    return attributes_of((Span if span else LogRecord).FromString(encoded).attributes)


def request(**more: str) -> RequestContext:
    return make_context("POST", "/p?api_key=secret", "a.test:80", more.items())


@pytest.mark.parametrize("span", [False, True])
def test_they_have_the_keys_of_the_access_log(span: bool) -> None:
    found = told(request(**{"user-agent": "me/1"}), span=span)
    assert found == {
        "http.method": "POST", "http.version": "HTTP/1.1", "bytes.received": 0, "bytes.sent": 0, "protocol": "http",
        "user_agent.original": "me/1", "duration_ms": 0.0, "http.path": found["http.path"],
    }  # fmt: skip
    assert "secret" not in repr(found)


def test_fields_are_added_and_removed() -> None:
    added = {"who": "'ann'", "n": "1 + 1", "many": "flatten({'a': 1, 'b': 2})", "http.method": "'mine'", "none": "jwt.sub"}
    fields = LogFields(None, [(key, compile_expression(text, "log")) for key, text in added.items()])
    ctx = request()
    ctx.add_log_field("mcp.target", "t")
    ctx.add_log_field("own", [1, "x"])
    found = told(ctx, remove=("http.path", "duration"), fields=fields)
    wanted = {"who": "ann", "n": 2, "many.a": 1, "many.b": 2, "http.method": "mine", "mcp.target": "t", "own": [1, "x"]}
    assert {key: found.get(key) for key in wanted} == wanted
    assert not found.keys() & {"http.path", "duration_ms", "none", "many"}


def test_the_number_of_removed_keys_has_a_limit() -> None:
    with pytest.raises(ValueError, match="at most 32"):
        OtlpFields(tuple(f"k{number}" for number in range(MAX_REMOVED + 1)))
