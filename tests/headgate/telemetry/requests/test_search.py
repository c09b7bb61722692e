"""Answers from the request log."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.telemetry.requests import search as searching
from headgate.telemetry.requests.analytics import KEYS, summary
from headgate.telemetry.requests.database import Database
from headgate.telemetry.requests.question import FILTERS, BadQuestion, document
from headgate.telemetry.requests.records import COLUMNS, Row
from headgate.telemetry.requests.search import SEARCH_KEYS, TAIL_KEYS, Tail, get, search

SECOND = 1_000_000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def made(at: int, **fields: Any) -> Row:
    values = {"completed_us": at * SECOND, "started_us": at * SECOND - 1500, "status": 200, "attributes": json.dumps({"n": at, "u": "é"})}
    return tuple({**values, **fields}.get(name) for name in COLUMNS)


MODEL = {"provider": "openai", "request_model": "m", "response_model": "m-1", "input_tokens": 3, "output_tokens": 4, "cost_picos": 5 * 10**11}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = str(tmp_path_factory.mktemp("log") / "data.db")
    database = Database(found)
    rows = [made(at) for at in range(1, 11)]
    rows[2] = made(3, status=503, error="refused", trace_id=TRACE, span_id="00f067aa0ba902b7")
    rows[4] = made(5, **MODEL)
    rows[5] = made(5, **{**MODEL, "provider": "gemini"})         # at the same time as the one before
    database.add(rows)
    database.close()
    return found


def ids(found: Any) -> list[int]:
    return [int(one["id"]) for one in found["logs"]]


def test_the_newest_come_first_and_cursors_lead_through_all(path: str) -> None:
    seen: list[int] = []
    cursor = None
    for _ in range(10):
        found = search(path, {"limit": 3, "cursor": cursor})
        seen += ids(found)
        cursor = found["nextCursor"]
        if cursor is None:
            break
    assert seen == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert ids(search(path, {})) == seen
    assert search(path, {"limit": 10})["nextCursor"] is None


def test_an_entry_has_the_fields_of_the_reference(path: str) -> None:
    [found] = search(path, {"filters": {"provider": ["openai"]}, "includeAttributes": True})["logs"]
    assert found == {
        "id": "5", "startedAt": "1970-01-01T00:00:04.998500Z", "completedAt": "1970-01-01T00:00:05.000000Z", "durationMs": 1.5,
        "traceId": None, "spanId": None, "httpStatus": 200, "error": None,
        "genAi": {"provider": "openai", "requestModel": "m", "responseModel": "m-1"},
        "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}, "cost": 0.5, "hasPayload": False,
        "attributes": {"n": 5, "u": "é"},
    }  # fmt: skip
    assert "attributes" not in search(path, {})["logs"][0]
    assert search(path, {})["logs"][0]["genAi"] is None


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({"httpStatus": [503, 404]}, [3]), ({"provider": ["openai", "gemini"]}, [6, 5]), ({"requestModel": ["m"], "provider": ["gemini"]}, [6]),
        ({"responseModel": ["m"]}, []), ({"traceId": TRACE.upper()}, [3]), ({"hasPayload": True}, []), ({"attributes": {"n": 9}}, [9]),
        ({"attributes": {"n": "9", "u": "é"}}, [9]), ({"attributes": {"u": "x"}}, []), ({"httpStatus": [], "hasPayload": False, "traceId": None}, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
    ],
)  # fmt: skip
def test_filters(path: str, filters: Any, wanted: list[int]) -> None:
    assert ids(search(path, {"filters": filters})) == wanted


def test_a_time_range_has_its_beginning_and_not_its_end(path: str) -> None:
    between = {"from": "1970-01-01T00:00:02Z", "to": "1970-01-01T00:00:05Z"}
    assert ids(search(path, {"timeRange": between})) == [4, 3, 2]


@pytest.mark.parametrize("limit", [0, 501, "5", True, 1.5])
def test_limits(path: str, limit: Any) -> None:
    with pytest.raises(BadQuestion, match="limit"):
        search(path, {"limit": limit})


def test_one_record(path: str) -> None:
    found = get(path, {"id": "3"})
    assert found is not None
    assert (found["httpStatus"], found["error"], found["traceId"], found["attributes"]["n"]) == (503, "refused", TRACE, 3)
    assert get(path, {"id": "99"}) is None


def test_payloads_are_told_where_there_are_some(tmp_path: Path) -> None:
    path = str(tmp_path / "data.db")
    database = Database(path)
    database.add([made(1, prompt="hi", completion="hello"), made(2)])
    database.close()
    found = get(path, {"id": "1"})
    assert found is not None
    assert (found["hasPayload"], found["payload"]) == (True, {"requestPrompt": "hi", "responseCompletion": "hello"})
    assert ids(search(path, {"filters": {"hasPayload": True}})) == [1]


def test_a_tail_gives_what_comes_and_goes_on_at_a_cursor(tmp_path: Path) -> None:
    path = str(tmp_path / "data.db")
    database = Database(path)
    database.add([made(1), made(2)])
    tail = Tail(path, {"filters": {"httpStatus": [200]}})
    tail.begin()
    assert tail.more() == []
    database.add([made(3), made(4, status=500), made(2)])
    found = tail.more()
    assert [entry["id"] for _, entry in found] == ["3", "5"]
    assert tail.more() == []
    again = Tail(path, {"cursor": found[0][0]})
    again.begin()
    assert [entry["id"] for _, entry in again.more()] == ["4", "5"]
    database.close()


def test_a_question_that_takes_too_long_is_given_up(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_STEPS", 1)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"), searching.reading(path, -1.0) as connection:
        connection.execute("SELECT count(*) FROM requests a, requests b").fetchall()


RANGE = {"from": "1970-01-01T00:00:00Z", "to": "1970-01-01T00:00:12Z"}


def test_sums_over_time(path: str) -> None:
    found = summary(path, {"timeRange": RANGE, "bucketSeconds": 4})
    assert found["bucketSeconds"] == 4
    assert [one["start"][17:19] for one in found["buckets"]] == ["00", "04", "08"]
    assert [(one["requests"], one["errors"], one["totalTokens"], one["cost"]) for one in found["buckets"]] == [
        (3, 1, 0, 0), (4, 0, 14, 1.0), (3, 0, 0, 0),
    ]  # fmt: skip
    assert found["groups"] == []
    assert found["filterOptions"] == {"httpStatus": [200, 503], "provider": ["gemini", "openai"], "requestModel": ["m"], "responseModel": ["m-1"]}


def test_sums_by_group(path: str) -> None:
    found = summary(path, {"timeRange": RANGE, "bucketCount": 1, "groupBy": ["provider", "attributes.u"]})
    assert found["groups"] == [
        {"key": {"provider": None, "attributes.u": "é"}, "requests": 8, "errors": 1, "totalTokens": 0, "cost": 0.0},
        {"key": {"provider": "gemini", "attributes.u": "é"}, "requests": 1, "errors": 0, "totalTokens": 7, "cost": 0.5},
        {"key": {"provider": "openai", "attributes.u": "é"}, "requests": 1, "errors": 0, "totalTokens": 7, "cost": 0.5},
    ]
    [bucket] = found["buckets"]
    assert sorted(one["requests"] for one in bucket["groups"]) == [1, 1, 8]


def test_by_default_the_last_day_in_96_buckets(path: str) -> None:
    found = summary(path, {})
    assert (found["bucketSeconds"], len(found["buckets"])) == (900, 96)
    assert sum(one["requests"] for one in found["buckets"]) == 0


def test_all_of_time_has_buckets_too(path: str) -> None:
    for timerange in ({"from": "0001-01-01T00:00:00Z", "to": "9999-12-31T23:59:59Z"}, {"from": "9999-12-31T23:59:59Z"}, {"to": "0001-01-01T00:00:00Z"}):
        found = summary(path, {"timeRange": timerange, "bucketCount": 2})
        assert 1 <= len(found["buckets"]) <= 2


@pytest.mark.parametrize(
    "question",
    [
        {"bucketSeconds": 1}, {"bucketCount": 501}, {"bucketCount": 5, "bucketSeconds": 900}, {"groupBy": ["id"]}, {"groupBy": ["attributes."]},
        {"groupBy": "provider"}, {"groupBy": [["a"]]}, {"groupBy": ["provider", "provider"]}, {"filters": {"x": 1}}, {"bucketSeconds": 0},
    ],
)  # fmt: skip
def test_what_cannot_be_summed_is_refused(path: str, question: Any) -> None:
    with pytest.raises(BadQuestion):
        summary(path, question)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(["1970-01-01T00:00:05Z", "1970-01-01T00:00:05Z|5", "5"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["from", "to", *FILTERS, "x'"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from([*SEARCH_KEYS, *KEYS, "id"]), ANY, max_size=4))
def test_whatever_is_asked_there_is_an_answer_or_a_reason(path: str, question: dict[str, Any]) -> None:
    for asked, known in ((search, SEARCH_KEYS), (summary, KEYS), (get, ("id",)), (lambda path, one: Tail(path, one).more, TAIL_KEYS)):
        with contextlib.suppress(BadQuestion):
            asked(path, document(json.dumps(question).encode(), known))  # type: ignore[operator]
