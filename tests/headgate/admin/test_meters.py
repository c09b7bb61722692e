"""Sums of what is counted, as the page shows them."""

from __future__ import annotations

from decimal import Decimal

from headgate.admin.meters import MAX_ROWS, Meters, endpoint_rows, number, quantile_ms
from headgate.telemetry.families import BUCKETS
from headgate.telemetry.metrics import label_text, labels_of
from headgate_engine.shared.histogram import HistogramValue, Sample

BOUNDS = BUCKETS["H"]


def requests(value: int, **labels: str) -> Sample:
    return Sample("gw_requests_total", label_text(labels), "counter", value)


def histogram(family: str, counts: tuple[int, ...], total: float, **labels: str) -> Sample:
    return Sample(family, label_text(labels), "histogram", HistogramValue(BOUNDS, counts, total))


def test_labels_come_back_as_they_were() -> None:
    labels = {"a": 'quote " backslash \\ line\nend', "b": "", "c": 'x="y",z="'}
    assert labels_of(label_text(labels)) == labels
    assert labels_of("") == {}


def test_requests_and_errors_add_up_by_route_and_by_backend() -> None:
    counts = (1,) + (0,) * len(BOUNDS)
    meters = Meters([
        requests(5, route="r", backend="a", status="200", protocol="http"),
        requests(2, route="r", backend="b", status="404", protocol="http"),
        requests(1, route="r", backend="b", status="503", protocol="http"),
        requests(9, route="s", backend="a", status="unknown", protocol="http"),
        requests(1000, route="other", backend="other", status="other"),
        histogram("gw_request_duration_seconds", counts, 0.5, route="r", backend="a"),
        histogram("gw_request_duration_seconds", counts, 0.25, route="r", backend="b"),
        Sample("gw_response_bytes_total", label_text({"route": "r", "backend": "a"}), "counter", 77),
    ])  # fmt: skip
    routes = meters.traffic("route")
    assert [row["name"] for row in routes] == ["s", "r"], "the busiest first"
    row = routes[1]
    assert (row["requests"], row["clientErrors"], row["serverErrors"], row["bytes"]) == (8, 2, 1, 77)
    assert row["latency"] == {"counts": [2] + [0] * len(BOUNDS), "sum": 0.75}
    assert routes[0]["serverErrors"] == 9, "a request without a status is an error"
    assert {row["name"]: row["requests"] for row in meters.traffic("backend")} == {"a": 14, "b": 3}
    every = meters.all_traffic()
    assert (every["requests"], every["clientErrors"], every["serverErrors"], every["bytes"]) == (1017, 2, 10, 77)
    assert every["latency"] == {"counts": [2] + [0] * len(BOUNDS), "sum": 0.75}


def test_tokens_and_cost_add_up_by_model() -> None:
    def tokens(kind: str, count: int, total: float, model: str) -> Sample:
        labels = {"gen_ai_token_type": kind, "gen_ai_system": "openai", "gen_ai_request_model": model}
        return histogram("gw_gen_ai_client_token_usage", (count,) + (0,) * len(BOUNDS), total, **labels)

    price = label_text({"gen_ai_system": "openai", "gen_ai_request_model": "m"})
    found = Meters([
        tokens("input", 2, 30, "m"), tokens("output", 2, 10, "m"), tokens("input_cache_read", 1, 5, "m"), tokens("input", 1, 4, "n"),
        Sample("gw_gen_ai_client_cost_usd_total", price, "counter", Decimal("2.25")),
        Sample("gw_gen_ai_client_cost_usd_total", label_text({"provider": "x", "model": "y"}), "counter", 1),
    ]).models()  # fmt: skip
    assert [(row["model"], row["requests"], row["inputTokens"], row["outputTokens"], row["costUsd"]) for row in found] == [
        ("m", 2, 30, 10, 2.25), ("n", 1, 4, 0, None), ("y", 0, 0, 0, 1),
    ]  # fmt: skip


def test_calls_errors_and_first_tokens_add_up_by_model() -> None:
    def observed(family: str, letter: str, place: int, **labels: str) -> Sample:
        counts = [0] * (len(BUCKETS[letter]) + 1)
        counts[place] = 3
        named = label_text({"gen_ai_system": "openai", "gen_ai_request_model": "m", **labels})
        return Sample(family, named, "histogram", HistogramValue(BUCKETS[letter], tuple(counts), 1.0))

    [row] = Meters([
        observed("gw_gen_ai_server_request_duration", "D", 2, error_type=""),
        observed("gw_gen_ai_server_request_duration", "D", 2, error_type="", route="other-route"),
        observed("gw_gen_ai_server_request_duration", "D", 5, error_type="503"),
        observed("gw_gen_ai_server_time_to_first_token", "F", 1),
    ]).models()  # fmt: skip
    assert (row["calls"], row["errors"], row["requests"]) == (9, 3, 0)
    assert [at for at, one in enumerate(row["durations"]) if one] == [2, 5]
    assert row["firstToken"][1] == sum(row["firstToken"]) == 3


def test_only_the_busiest_rows_are_shown() -> None:
    meters = Meters(requests(number, route=f"r{number}", status="200") for number in range(MAX_ROWS + 50))
    rows = meters.traffic("route")
    assert len(rows) == MAX_ROWS + 50, "the state cuts them and says how many there are"
    assert rows[MAX_ROWS - 1]["requests"] == 50
    assert meters.all_traffic()["requests"] == sum(range(MAX_ROWS + 50))
    assert len(meters.counts("gw_requests_total", ("route",))) == MAX_ROWS


def test_counts_by_some_labels() -> None:
    sessions = [Sample("gw_mcp_sessions", label_text({"backend": "m", "worker": str(i)}), "gauge", 2) for i in range(3)]
    assert Meters(sessions).counts("gw_mcp_sessions", ("backend",)) == [{"backend": "m", "count": 6}]
    assert Meters(sessions).total("gw_mcp_sessions") == 6
    assert Meters([]).total("gw_mcp_sessions") == 0
    assert number(HistogramValue((1.0,), (1, 2), 4.5)) == 4.5


def test_pools_of_workers_add_up_and_silent_workers_are_left_out() -> None:
    state = {"health": 1.0, "latency": 0.1, "pending": 0, "total": 3, "failures": 0, "ejected": 0, "left": None, "more": 1}
    workers = [{"pools": {"b:1": {"open": 1, "idle": 1, "failed": 0}}}, {}, {"pools": {"b:1": {"open": 2, "idle": 0, "failed": 4}}}]
    rows = endpoint_rows([("shop", "service/shop", "w1")], lambda owner, key: {**state, "who": (owner, key)}, workers)
    assert rows[0]["backend"] == "shop"
    assert rows[0]["total"] == 3
    assert "who" not in rows[0]
    assert rows[0]["at"] == "w1"
    named = endpoint_rows([("shop", "service/shop", "w1")], lambda *_: state, [], {("service/shop", "w1"): "10.0.0.1:80"})
    assert named[0]["at"] == "10.0.0.1:80"
    assert rows[1] == {"address": "b:1", "open": 3, "idle": 1, "failed": 4}


def test_quantiles_lie_between_bounds() -> None:
    bounds = (0.01, 0.1)
    assert quantile_ms(0.5, [0, 0, 0], bounds) is None
    assert quantile_ms(0.5, [2, 0, 0], bounds) == 5
    assert quantile_ms(0.75, [0, 4, 0], bounds) == 77.5
    assert quantile_ms(0.99, [0, 0, 3], bounds) == 100, "nothing is known beyond the last bound"
