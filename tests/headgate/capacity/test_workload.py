"""Requests by kind of traffic."""

from __future__ import annotations

import json

import pytest

from headgate.capacity.errors import BenchError
from headgate.capacity.workload import (
    TargetPlace,
    http_request,
    llm_body,
    llm_place,
    llm_request,
    mcp_place,
    place_of,
    tool_call,
    without_secrets,
)


@pytest.mark.parametrize(("url", "place", "authority"), [
    ("http://a", TargetPlace(False, "a", 80, "/"), "a"),
    ("http://a:80/b?c=d", TargetPlace(False, "a", 80, "/b?c=d"), "a"),
    ("https://a:444/", TargetPlace(True, "a", 444, "/"), "a:444"),
    ("https://[::1]/x", TargetPlace(True, "::1", 443, "/x"), "[::1]"),
])  # fmt: skip
def test_a_url_has_its_parts(url: str, place: TargetPlace, authority: str) -> None:
    assert place_of(url) == place
    assert place.authority == authority
    assert place_of(place.url) == place


@pytest.mark.parametrize("url", ["a", "ftp://a/", "http://", "http://a:x/", "http://a:99999/", "http://u:p@a/"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(BenchError, match=url.split("/")[0]):
        place_of(url)


@pytest.mark.parametrize(("url", "shown"), [
    ("http://a/b", "http://a/b"),
    ("https://a:444/b?key=SECRET&alt=sse", "https://a:444/b?key=***&alt=***"),
    ("http://a/?SECRET", "http://a/?***"),
    ("http://a/?key=a%26b?c=d&", "http://a/?key=***&***"),
    ("http://u:SECRET@a/b?c=@d", "http://***@a/b?c=***"),
    ("http://u:SEC@RET@a/b", "http://***@a/b"),
    ("u:SECRET@a:80", "***@a:80"),
    ("http://a/@b", "http://a/@b"),
    ("http://a/b?", "http://a/b"),
    ("http://a/b#SECRET", "http://a/b"),
])  # fmt: skip
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


@pytest.mark.parametrize("url", [
    "http://u:SECRET@a/", "ftp://a/?key=SECRET", "http://a:x/?key=SECRET", "http://u:SECRET@a:x/",
    # Characters of a password that end a host, and what is no address.
    "http://u:SECRET/1@a/", "http://u:SECRET?@a/", "http://u:SECRET#@a/",
    "http://u:SECRET\u2100@a/", "http://u:SECRET@[a/", "http://a/?key=a SECRET", "http://a/?key=\u00e9SECRET",
])  # fmt: skip
def test_a_refusal_tells_no_secret(url: str) -> None:
    with pytest.raises(BenchError) as told:
        place_of(url)
    assert "SECRET" not in str(told.value)


def test_a_place_is_shown_without_secrets_and_asked_with_them() -> None:
    place = place_of("http://a/b?key=SECRET")
    assert (place.shown, place.target) == ("http://a/b?key=***", "/b?key=SECRET")


def test_paths_are_the_usual_ones_where_there_are_none() -> None:
    bare, own = place_of("http://a"), place_of("http://a/own")
    assert llm_place(bare, "messages").target == "/v1/messages"
    assert mcp_place(bare).target == "/mcp"
    assert llm_place(own, "messages") == mcp_place(own) == own


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("form", "member"), [("completions", "messages"), ("messages", "messages"), ("responses", "input")])
def test_a_request_to_a_model(form: str, member: str, stream: bool) -> None:
    body = llm_body(form, "m", "hello", stream)
    document = json.loads(body)
    assert document["model"] == "m"
    assert "hello" in str(document[member])
    assert document.get("stream", False) is stream
    spec = llm_request(place_of("http://a/x"), form, (("Content-Type", "application/json; charset=utf-8"),), body, stream)
    assert (spec.judgement, spec.format) == (("stream", form) if stream else ("status", None))
    assert [name.lower() for name, _ in spec.fields].count("content-type") == 1
    assert ("anthropic-version" in dict(spec.fields)) is (form == "messages")


def test_a_call_of_a_tool_has_a_number_to_replace() -> None:
    spec = tool_call(place_of("http://a/mcp"), (("x", "y"),), "s1", "t", {"id": 1000000000})
    assert json.loads(spec.body)["params"] == {"name": "t", "arguments": {"id": 1000000000}}
    assert spec.body[: spec.number_at].endswith(b'"id":')
    assert dict(spec.fields)["mcp-session-id"] == "s1"
    assert "mcp-session-id" not in dict(tool_call(place_of("http://a"), (), None, "t", {}).fields)


def test_any_request() -> None:
    spec = http_request(place_of("http://a/x?y"), "PUT", (("a", "b"),), b"body")
    assert (spec.method, spec.target, spec.body, spec.number_at, spec.judgement) == ("PUT", "/x?y", b"body", -1, "status")
