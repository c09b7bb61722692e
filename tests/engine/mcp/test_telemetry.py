"""The edges of telemetry; what it tells is in tests/headgate/backend/mcp/test_request_telemetry.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate_engine.mcp.telemetry import (
    ExpressionView,
    RequestTelemetry,
    decoded,
    error_in,
    logged_session_id,
    response_in,
)
from headgate_engine.peek.rpc import parse

CALL = parse(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping"}}')


def count(_call: Any, _telemetry: RequestTelemetry) -> None:
    return None


@pytest.mark.parametrize("bad", [None, 5, object()])
def test_wrong_types_are_refused(bad: Any) -> None:
    for function in (decoded, error_in, logged_session_id, response_in, ExpressionView):
        with pytest.raises(TypeError):
            function(bad)
    with pytest.raises(TypeError):
        RequestTelemetry(SimpleNamespace(context=None), bad, None, None, count)
    with pytest.raises(TypeError):
        RequestTelemetry(SimpleNamespace(context=None), CALL, None, None, count).ended(200, bad)
    with pytest.raises(TypeError):
        RequestTelemetry(SimpleNamespace(context=None), CALL, None, None, count).addressed(bad, None, None)


def test_none_counts_nothing() -> None:
    with pytest.raises(TypeError):
        RequestTelemetry(SimpleNamespace(context=None), CALL, None, None, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        RequestTelemetry(None, CALL, None, None, count)


def test_a_call_whose_context_is_gone_is_counted_all_the_same() -> None:
    counted: list[str | None] = []
    found = RequestTelemetry(SimpleNamespace(context=None), CALL, "s", "only", lambda _call, one: counted.append(one.name))
    found.ended(200, b"")
    assert counted == ["ping"]
