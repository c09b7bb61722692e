"""What is asked of the request log."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.telemetry.requests.question import (
    BadQuestion,
    Span,
    conditions,
    cursor,
    document,
    identifier,
    moment,
    shown_time,
    time_range,
)
from headgate.telemetry.requests.stores import SQLITE


def test_times_have_an_offset_and_come_back_as_they_were() -> None:
    assert moment("1970-01-01T01:00:00+01:00", "x") == 0
    assert shown_time(moment("2026-01-31T12:00:00.123456Z", "x")) == "2026-01-31T12:00:00.123456Z"
    assert time_range({"from": "1970-01-01T00:00:01Z"}) == Span(1_000_000, None)
    assert cursor("1970-01-01T00:00:00.000005Z|17") == (5, 17)


def test_times_far_away_are_open_ends() -> None:
    assert moment("0001-01-01T00:00:00+23:59", "x") == 0
    assert shown_time(moment("9999-12-31T23:59:59-23:59", "x")).startswith("2100-")


BAD: list[tuple[Any, str]] = [
    ({"status": [1]}, "filters.status: unknown field; fields are httpStatus"),
    ({"httpStatus": 200}, "filters.httpStatus: expected a list of at most 100 numbers"),
    ({"httpStatus": ["200"]}, "filters.httpStatus: expected a list"),
    ({"httpStatus": [True]}, "filters.httpStatus: expected a list"),
    ({"httpStatus": [10**30]}, "filters.httpStatus: expected HTTP statuses"),
    ({"provider": [1]}, "filters.provider: expected a list of at most 100 strings"),
    ({"provider": ["a"] * 101}, "filters.provider: expected a list"),
    ({"traceId": "' OR 1"}, "filters.traceId: expected hexadecimal"),
    ({"hasPayload": "yes"}, "filters.hasPayload: expected true or false"),
    ({"attributes": {"a": ["b"]}}, "filters.attributes.a: expected a string"),
    ({"attributes": []}, "filters.attributes: expected an object"),
    ("x", "filters: expected an object"),
]


@pytest.mark.parametrize(("filters", "reason"), BAD)
def test_filters_are_closed(filters: Any, reason: str) -> None:
    with pytest.raises(BadQuestion, match="^" + reason.replace("(", r"\(")):
        conditions(Span(), filters, SQLITE)


def test_values_never_stand_in_the_text() -> None:
    found = conditions(Span(1, 2), {"provider": ["a'b"], "attributes": {"k'": "v'"}, "hasPayload": False}, SQLITE)
    assert "'" not in found.text
    assert found.values == (1, 2, "a'b", "k'", "v'")


@pytest.mark.parametrize(
    ("body", "reason"),
    [(b"[", "not JSON"), (b'{"limit": "\\ud800"}', "not JSON"), (b"[]", "the body: expected an object"), (b'{"limits": 1}', "limits: unknown field"), (b"[" * 100_000, "not JSON")],
    ids=["half", "half a character", "list", "unknown", "deep"],
)
def test_bodies_are_closed(body: bytes, reason: str) -> None:
    with pytest.raises(BadQuestion, match=reason):
        document(body, ("limit",))
    assert document(b"", ("limit",)) == {}


@pytest.mark.parametrize("text", ["", "x", "-1", "1.0", "٣", "9" * 20, 1, None])
def test_what_is_no_id_is_refused(text: Any) -> None:
    with pytest.raises(BadQuestion):
        identifier(text, "id")


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00", "2026-01-31", "now", "", 5, "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_refused(text: Any) -> None:
    with pytest.raises(BadQuestion):
        moment(text, "timeRange.from")


def test_a_range_has_a_beginning_before_its_end() -> None:
    with pytest.raises(BadQuestion, match="before"):
        time_range({"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"})
