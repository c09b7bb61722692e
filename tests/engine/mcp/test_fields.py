"""Which heads the engine passes on to MCP targets, and what of them."""

from __future__ import annotations

import pytest

from headgate.backend.mcp.http_service import NOT_FORWARDED
from headgate.dialect.mcp import versions
from headgate_drivers.requests import plain_head, target_head
from headgate_engine.context.request import make_context
from headgate_engine.mcp.fields import BEGINNINGS, DROPPED, VERSIONS, is_message
from headgate_engine.peek.rpc import parse

PLAIN = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-session-id": "s-1",
    "mcp-protocol-version": "2025-11-25",
}
CALL = parse(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping"}}')


def read(*more: tuple[str, str], **fields: str | None) -> str | None:
    found = {**PLAIN, **{name.replace("_", "-"): value for name, value in fields.items()}}
    given = [(name, value) for name, value in found.items() if value is not None]
    return plain_head(make_context("POST", "/mcp", headers=[*given, *more]))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mcp_protocol_version": None},
        {"mcp_protocol_version": "2024-11-05"},
        {"accept": "text/event-stream;q=0.1,application/json;x=1"},
        {"content_type": "Application/JSON; charset=utf-8"},
    ],
)
def test_a_plain_head(fields: dict[str, str | None]) -> None:
    assert read(**fields) == "s-1"


@pytest.mark.parametrize(
    "fields",
    [
        {"mcp_session_id": None},
        {"accept": None},
        {"accept": "application/json"},
        {"accept": "*/*"},
        {"content_type": None},
        {"content_type": "text/plain"},
        {"content_type": "application/jso"},
        {"mcp_protocol_version": "2026-07-28"},
        {"mcp_protocol_version": ""},
        {"mcp_param_x": "1"},
        {"Mcp_Method": "tools/call"},
        {"mcp_name": "ping"},
        {"traceparent": "00"},
        {"TraceState": "a=b"},
        {"baggage": "a=b"},
        {"x_gw_relay_identity": "x"},
    ],
)
def test_a_head_that_python_looks_at(fields: dict[str, str | None]) -> None:
    assert read(**fields) is None


@pytest.mark.parametrize("name", ["mcp-session-id", "mcp-protocol-version", "content-type"])
def test_a_field_that_stands_twice_is_for_python(name: str) -> None:
    assert read((name, PLAIN[name])) is None


def test_what_is_not_for_targets_stays_behind_as_in_python() -> None:
    given = [(name, "v") for name in sorted(NOT_FORWARDED - {"mcp-method", "mcp-name"})] + [("X-Own", "1"), ("te", "trailers"), ("x-api-keys", "2")]
    context = make_context("POST", "/mcp", headers=[*given, ("mcp-session-id", "s")])
    found = target_head(context, CALL)
    assert found is not None
    assert found.items() == [*given[-3:], ("mcp-method", "tools/call"), ("mcp-name", "ping")]


def test_the_tables_are_those_of_python() -> None:
    assert {one.decode() for one in VERSIONS} == set(versions.LEGACY)
    assert {one.decode() for one in DROPPED} - {versions.SESSION_HEADER} <= NOT_FORWARDED
    assert {one for one in NOT_FORWARDED if one.startswith("mcp-")} <= {one.decode() for one in BEGINNINGS}


@pytest.mark.parametrize("name", ["pïng", " a", "a ", "", "a\\nb", "=?base64?eA==?="])
def test_names_that_have_to_be_coded_are_for_python(name: str) -> None:
    text = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}"}}}}'.encode()
    assert target_head(make_context(), parse(text)) is None


def test_credentials_stay_behind_in_any_field() -> None:
    context = make_context(headers=[("a", "x k-1 y"), ("b", "k-2"), ("c", "t-1")])
    context.api_key_text, context.jwt_token = b"k-1", b"t-1"
    found = target_head(context, CALL)
    assert found is not None
    assert [name for name, _ in found.items()] == ["b", "mcp-method", "mcp-name"]


@pytest.mark.parametrize("bad", [None, 5, "x", object()])
def test_wrong_types_are_refused(bad: object) -> None:
    with pytest.raises(TypeError):
        plain_head(bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        target_head(bad, CALL)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        target_head(make_context(), bad)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        is_message(bad)  # type: ignore[arg-type]


def test_what_is_a_message() -> None:
    assert is_message(b'{"jsonrpc":"2.0","method":"x"}')
    assert not is_message(b"{}")
