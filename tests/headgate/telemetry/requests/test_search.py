"""Answers from the request log."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from postgres_rig import Server, postgres

from headgate.document.secret import Secret
from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests import sqlite
from headgate.telemetry.requests.analytics import KEYS, summary
from headgate.telemetry.requests.question import FILTERS, BadQuestion, document
from headgate.telemetry.requests.records import COLUMNS, Row
from headgate.telemetry.requests.search import SEARCH_KEYS, TAIL_KEYS, Tail, get, search
from headgate.telemetry.requests.stores import LogFailure, open_to_write, reading

SECOND = 1_000_000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def made(at: int, **fields: Any) -> Row:
    values = {"completed_us": at * SECOND, "started_us": at * SECOND - 1500, "status": 200, "attributes": json.dumps({"n": at, "u": "é"})}
    return tuple({**values, **fields}.get(name) for name in COLUMNS)


MODEL = {"provider": "openai", "request_model": "m", "response_model": "m-1", "input_tokens": 3, "output_tokens": 4, "cost_picos": 5 * 10**11}


Make = Callable[[], RequestLogStore]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Says where a new database is, of each engine in turn."""
    if request.param == "sqlite":
        return lambda: RequestLogStore(path=str(tmp_path_factory.mktemp("log") / "data.db"))
    server: Server = request.getfixturevalue("server")
    return lambda: RequestLogStore(url=Secret(server.url(server.database())))


def write(store: RequestLogStore, *batches: list[Row]) -> None:
    database = open_to_write(store, "a writer")
    for number, rows in enumerate(batches, 1):
        database.add(rows, number)
    database.close()


@pytest.fixture(scope="module")
def store(make: Make) -> RequestLogStore:
    found = make()
    rows = [made(at) for at in range(1, 11)]
    rows[2] = made(3, status=503, error="refused", trace_id=TRACE, span_id="00f067aa0ba902b7")
    rows[4] = made(5, **MODEL)
    rows[5] = made(5, **{**MODEL, "provider": "gemini"})         # at the same time as the one before
    write(found, rows)
    return found


def ids(found: Any) -> list[int]:
    return [int(one["id"]) for one in found["logs"]]


def test_the_newest_come_first_and_cursors_lead_through_all(store: RequestLogStore) -> None:
    seen: list[int] = []
    cursor = None
    for _ in range(10):
        found = search(store, {"limit": 3, "cursor": cursor})
        seen += ids(found)
        cursor = found["nextCursor"]
        if cursor is None:
            break
    assert seen == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert ids(search(store, {})) == seen
    assert search(store, {"limit": 10})["nextCursor"] is None


def test_an_entry_has_the_fields_of_the_reference(store: RequestLogStore) -> None:
    [found] = search(store, {"filters": {"provider": ["openai"]}, "includeAttributes": True})["logs"]
    assert found == {
        "id": "5", "startedAt": "1970-01-01T00:00:04.998500Z", "completedAt": "1970-01-01T00:00:05.000000Z", "durationMs": 1.5,
        "traceId": None, "spanId": None, "httpStatus": 200, "error": None,
        "genAi": {"provider": "openai", "requestModel": "m", "responseModel": "m-1"},
        "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}, "cost": 0.5, "hasPayload": False,
        "attributes": {"n": 5, "u": "é"},
    }  # fmt: skip
    assert "attributes" not in search(store, {})["logs"][0]
    assert search(store, {})["logs"][0]["genAi"] is None


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({"httpStatus": [503, 404]}, [3]), ({"provider": ["openai", "gemini"]}, [6, 5]), ({"requestModel": ["m"], "provider": ["gemini"]}, [6]),
        ({"responseModel": ["m"]}, []), ({"traceId": TRACE.upper()}, [3]), ({"hasPayload": True}, []), ({"attributes": {"n": 9}}, [9]),
        ({"attributes": {"n": "9", "u": "é"}}, [9]), ({"attributes": {"u": "x"}}, []), ({"httpStatus": [], "hasPayload": False, "traceId": None}, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
    ],
)  # fmt: skip
def test_filters(store: RequestLogStore, filters: Any, wanted: list[int]) -> None:
    assert ids(search(store, {"filters": filters})) == wanted


def test_a_time_range_has_its_beginning_and_not_its_end(store: RequestLogStore) -> None:
    between = {"from": "1970-01-01T00:00:02Z", "to": "1970-01-01T00:00:05Z"}
    assert ids(search(store, {"timeRange": between})) == [4, 3, 2]


@pytest.mark.parametrize("limit", [0, 501, "5", True, 1.5])
def test_limits(store: RequestLogStore, limit: Any) -> None:
    with pytest.raises(BadQuestion, match="limit"):
        search(store, {"limit": limit})


def test_one_record(store: RequestLogStore) -> None:
    found = get(store, {"id": "3"})
    assert found is not None
    assert (found["httpStatus"], found["error"], found["traceId"], found["attributes"]["n"]) == (503, "refused", TRACE, 3)
    assert get(store, {"id": "99"}) is None


def test_payloads_are_told_where_there_are_some(make: Make) -> None:
    store = make()
    write(store, [made(1, prompt="hi", completion="hello"), made(2)])
    found = get(store, {"id": "1"})
    assert found is not None
    assert (found["hasPayload"], found["payload"]) == (True, {"requestPrompt": "hi", "responseCompletion": "hello"})
    assert ids(search(store, {"filters": {"hasPayload": True}})) == [1]


def test_a_tail_gives_what_comes_and_goes_on_at_a_cursor(make: Make) -> None:
    store = make()
    database = open_to_write(store, "a writer")
    database.add([made(1), made(2)], 1)
    tail = Tail(store, {"filters": {"httpStatus": [200]}})
    tail.begin()
    assert tail.more() == []
    database.add([made(3), made(4, status=500), made(2)], 2)
    found = tail.more()
    assert [entry["id"] for _, entry in found] == ["3", "5"]
    assert tail.more() == []
    again = Tail(store, {"cursor": found[0][0]})
    again.begin()
    assert [entry["id"] for _, entry in again.more()] == ["4", "5"]
    database.close()


def test_a_question_that_takes_too_long_is_given_up(store: RequestLogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_STEPS", 1)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(LogFailure, match="interrupted"), reading(store, 0.2) as reader:
        reader.rows(endless, ())
    assert ids(search(store, {"limit": 1})) == [10]


RANGE = {"from": "1970-01-01T00:00:00Z", "to": "1970-01-01T00:00:12Z"}


def test_sums_over_time(store: RequestLogStore) -> None:
    found = summary(store, {"timeRange": RANGE, "bucketSeconds": 4})
    assert found["bucketSeconds"] == 4
    assert [one["start"][17:19] for one in found["buckets"]] == ["00", "04", "08"]
    assert [(one["requests"], one["errors"], one["totalTokens"], one["cost"]) for one in found["buckets"]] == [
        (3, 1, 0, 0), (4, 0, 14, 1.0), (3, 0, 0, 0),
    ]  # fmt: skip
    assert found["groups"] == []
    assert found["filterOptions"] == {"httpStatus": [200, 503], "provider": ["gemini", "openai"], "requestModel": ["m"], "responseModel": ["m-1"]}


def test_sums_by_group(store: RequestLogStore) -> None:
    found = summary(store, {"timeRange": RANGE, "bucketCount": 1, "groupBy": ["provider", "attributes.u"]})
    assert found["groups"] == [
        {"key": {"provider": None, "attributes.u": "é"}, "requests": 8, "errors": 1, "totalTokens": 0, "cost": 0.0, "meanMs": 1.5},
        {"key": {"provider": "gemini", "attributes.u": "é"}, "requests": 1, "errors": 0, "totalTokens": 7, "cost": 0.5, "meanMs": 1.5},
        {"key": {"provider": "openai", "attributes.u": "é"}, "requests": 1, "errors": 0, "totalTokens": 7, "cost": 0.5, "meanMs": 1.5},
    ]
    [bucket] = found["buckets"]
    assert sorted(one["requests"] for one in bucket["groups"]) == [1, 1, 8]


MANY_KINDS = [1, 1.5, "1", True, None, ["a", 1], "x"]


def test_groups_of_values_of_any_kind(make: Make) -> None:
    store = make()
    write(store, [made(at, attributes=json.dumps({"k": value} if at else {})) for at, value in enumerate([None, *MANY_KINDS, *MANY_KINDS])])
    found = summary(store, {"timeRange": {"from": "1970-01-01T00:00:00Z", "to": "1970-01-01T00:01:00Z"}, "bucketCount": 1, "groupBy": ["attributes.k"]})
    assert sum(one["requests"] for one in found["groups"]) == 15
    counts = {repr(one["key"]["attributes.k"]): one["requests"] for one in found["groups"]}
    assert (counts["None"], counts["1.5"], counts["'1'"], counts["'x'"]) == (3, 2, 2, 2)
    assert json.loads(next(one for one in counts if one.startswith("'[")).strip("'")) == ["a", 1]


@pytest.mark.parametrize(("wanted", "found"), [("1", 6), (1, 6), (True, 6), (1.5, 2), ("x", 2), ("true", 0)])
def test_attributes_are_equal_as_texts(make: Make, wanted: Any, found: int) -> None:
    store = make()
    write(store, [made(at, attributes=json.dumps({"k": value})) for at, value in enumerate(MANY_KINDS * 2)])
    assert len(search(store, {"filters": {"attributes": {"k": wanted}}})["logs"]) == found


def test_by_default_the_last_day_in_96_buckets(store: RequestLogStore) -> None:
    found = summary(store, {})
    assert (found["bucketSeconds"], len(found["buckets"])) == (900, 96)
    assert sum(one["requests"] for one in found["buckets"]) == 0


def test_all_of_time_has_buckets_too(store: RequestLogStore) -> None:
    for timerange in ({"from": "0001-01-01T00:00:00Z", "to": "9999-12-31T23:59:59Z"}, {"from": "9999-12-31T23:59:59Z"}, {"to": "0001-01-01T00:00:00Z"}):
        found = summary(store, {"timeRange": timerange, "bucketCount": 2})
        assert 1 <= len(found["buckets"]) <= 2


@pytest.mark.parametrize(
    "question",
    [
        {"bucketSeconds": 1}, {"bucketCount": 501}, {"bucketCount": 5, "bucketSeconds": 900}, {"groupBy": ["id"]}, {"groupBy": ["attributes."]},
        {"groupBy": "provider"}, {"groupBy": [["a"]]}, {"groupBy": ["provider", "provider"]}, {"filters": {"x": 1}}, {"bucketSeconds": 0},
    ],
)  # fmt: skip
def test_what_cannot_be_summed_is_refused(store: RequestLogStore, question: Any) -> None:
    with pytest.raises(BadQuestion):
        summary(store, question)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(["1970-01-01T00:00:05Z", "1970-01-01T00:00:05Z|5", "5"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["from", "to", *FILTERS, "x'"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from([*SEARCH_KEYS, *KEYS, "id"]), ANY, max_size=4))
def test_whatever_is_asked_there_is_an_answer_or_a_reason(store: RequestLogStore, question: dict[str, Any]) -> None:
    for asked, known in ((search, SEARCH_KEYS), (summary, KEYS), (get, ("id",)), (lambda path, one: Tail(store, one).more, TAIL_KEYS)):
        with contextlib.suppress(BadQuestion):
            asked(store, document(json.dumps(question).encode(), known))  # type: ignore[operator]
