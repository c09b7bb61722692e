"""Places of requests in traces."""

from __future__ import annotations

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.requests import uuid_text
from headgate_engine.context.headers import MessageHead
from headgate_engine.context.trace_context import TraceContext

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEX = "0123456789abcdef"


def head(*fields: tuple[str, str]) -> MessageHead:
    found = MessageHead()
    found.set_request("GET", "/", "a.test")
    for name, value in fields:
        found.add(name, value)
    return found


@pytest.mark.parametrize(("flags", "sampled"), [("00", False), ("01", True), ("03", True), ("ff", True), ("fe", False)])
def test_a_clients_field_is_taken_over(flags: str, sampled: bool) -> None:
    found = TraceContext(head(("Traceparent", f"00-{TRACE}-{PARENT}-{flags}"), ("tracestate", "a=b")))
    trace, span, parent = found.ids
    assert (trace, parent, found.from_client) == (TRACE, PARENT, sampled)
    assert re.fullmatch("[0-9a-f]{16}", span)
    assert span != PARENT


@pytest.mark.parametrize(
    "value",
    [
        "",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-0",
        f"00-{TRACE}-{PARENT}-01-x",
        f"00-{TRACE}-{PARENT}-01.",
        f"ff-{TRACE}-{PARENT}-01",
        f"0g-{TRACE}-{PARENT}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00_{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-0g",
        f"cc-{TRACE}-{PARENT}-01.what",
    ],
)
def test_an_unusable_field_begins_a_new_trace_and_takes_its_state_away(value: str) -> None:
    given_head = head(("traceparent", value), ("tracestate", "a=b"))
    found = TraceContext(given_head)
    trace, _, parent = found.ids
    assert (parent, found.from_client) == (None, None)
    assert trace != TRACE
    assert given_head.get("tracestate") is None


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert TraceContext(head(("traceparent", f"cc-{TRACE}-{PARENT}-01-what"))).ids[0] == TRACE
    assert TraceContext(head(("traceparent", f"cc-{TRACE}-{PARENT}-01"))).ids[0] == TRACE


def test_two_fields_are_none() -> None:
    field = ("traceparent", f"00-{TRACE}-{PARENT}-01")
    assert TraceContext(head(field, field)).ids[2] is None


@pytest.mark.parametrize("sampled", [True, False])
def test_what_goes_on_names_the_span_of_the_gateway(sampled: bool) -> None:
    given_head = head(("traceparent", f"00-{TRACE}-{PARENT}-00"), ("tracestate", "a=b"), ("baggage", "k=v"))
    found = TraceContext(given_head)
    found.tell(given_head, sampled=sampled)
    assert given_head.get_list("traceparent") == [f"00-{TRACE}-{found.ids[1]}-0{int(sampled)}"]
    assert (given_head.get("tracestate"), given_head.get("baggage")) == ("a=b", "k=v")


@given(st.text(alphabet=[*HEX, "-", "g", "F", "0", "1"], min_size=50, max_size=60))
def test_what_is_written_can_be_read_again(text: str) -> None:
    first = head(("traceparent", text))
    one = TraceContext(first)
    one.tell(first)
    two = TraceContext(first)
    assert (two.ids[0], two.ids[2]) == (one.ids[0], one.ids[1])


def test_a_uuid_is_one_of_version_4() -> None:
    found = {uuid_text() for _ in range(1000)}
    assert len(found) == 1000
    assert all(str(uuid.UUID(text)) == text for text in found)
    assert {(uuid.UUID(text).version, uuid.UUID(text).variant) for text in found} == {(4, uuid.RFC_4122)}
