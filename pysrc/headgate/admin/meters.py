"""The tables of the page. They are derived from existing metrics on request, so an unused page costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from headgate.telemetry.families import BUCKETS
from headgate.telemetry.metrics import labels_of
from headgate_engine.shared.histogram import HistogramValue, Sample

Json = dict[str, Any]
# Maximum number of rows in a table; the busiest rows come first.
MAX_ROWS: Final = 500
CLIENT_ERROR, SERVER_ERROR = 400, 500
MILLISECONDS: Final = 1000
# All labels of the overflow series have this value (shared.segment).
OTHER: Final = "other"


def is_other(labels: Mapping[str, str]) -> bool:
    """Return True if the labels are those of the overflow series."""
    return bool(labels) and all(value == OTHER for value in labels.values())


class Meters:
    """Sums over the series of one snapshot."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._families: dict[str, list[tuple[Mapping[str, str], Any]]] = {}
        for sample in samples:
            found = self._families.setdefault(sample.family, [])
            found.append((labels_of(sample.labels), sample.value))

    def series(self, family: str) -> list[tuple[Mapping[str, str], Any]]:
        """Return labels and value of every series except the overflow series."""
        return [one for one in self._families.get(family, ()) if not is_other(one[0])]

    def total(self, family: str) -> float:
        """Return the sum of a family of counters or gauges."""
        return sum(number(value) for _, value in self._families.get(family, ()))

    def traffic(self, label: str) -> list[Json]:
        """Return requests, errors, bytes and latencies grouped by `label` (`route` or `backend`), the busiest first."""
        rows: dict[str, Json] = {}
        for labels, value in self.series("gw_requests_total"):
            row = rows.setdefault(labels.get(label, ""), _traffic_row(labels, labels.get(label, "")))
            _add_requests(row, labels, value)
        for labels, value in self.series("gw_response_bytes_total"):
            if labels.get(label, "") in rows:
                rows[labels.get(label, "")]["bytes"] += value
        for labels, value in self.series("gw_request_duration_seconds"):
            if labels.get(label, "") in rows and isinstance(value, HistogramValue):
                _add_latency(rows[labels.get(label, "")], value)
        return _in_order(rows.values(), "requests")

    def all_traffic(self) -> Json:
        """Return the sums over all series, including the overflow series."""
        row = _traffic_row({}, "")
        for labels, value in self._families.get("gw_requests_total", ()):
            _add_requests(row, labels, value)
        row["bytes"] = self.total("gw_response_bytes_total")
        for _, value in self._families.get("gw_request_duration_seconds", ()):
            if isinstance(value, HistogramValue):
                _add_latency(row, value)
        return row

    def models(self) -> list[Json]:
        """Return requests, tokens, cost, calls, errors and latencies by provider and model, the busiest first.

        `costUsd` is null for models without a price. `calls` are attempts at the provider. `firstToken` has the
        counts of streams by the time to their first token (buckets F), `durations` those of calls (buckets D).
        """
        rows: dict[tuple[str, str], Json] = {}
        for labels, value in self.series("gw_gen_ai_client_token_usage"):
            row = rows.setdefault(_model(labels), _model_row(labels))
            kind = labels.get("gen_ai_token_type", "")
            if isinstance(value, HistogramValue) and kind in ("input", "output"):
                row[f"{kind}Tokens"] += value.sum
                row["requests"] += sum(value.counts) if kind == "input" else 0
        for labels, value in self.series("gw_gen_ai_client_cost_usd_total"):
            row = rows.setdefault(_model(labels), _model_row(labels))
            row["costUsd"] = (row["costUsd"] or 0) + number(value)
        for labels, value in self.series("gw_gen_ai_server_request_duration"):
            row = rows.setdefault(_model(labels), _model_row(labels))
            if isinstance(value, HistogramValue):
                calls = sum(value.counts)
                row["calls"] += calls
                row["errors"] += calls if labels.get("error_type") else 0
                row["durations"] = _added(row["durations"], value.counts)
        for labels, value in self.series("gw_gen_ai_server_time_to_first_token"):
            row = rows.setdefault(_model(labels), _model_row(labels))
            if isinstance(value, HistogramValue):
                row["firstToken"] = _added(row["firstToken"], value.counts)
        return busiest(rows.values(), "requests")

    def counts(self, family: str, names: tuple[str, ...]) -> list[Json]:
        """Return the sums of a family, grouped by the labels `names`."""
        rows: dict[tuple[str, ...], Json] = {}
        for labels, value in self.series(family):
            key = tuple(labels.get(name, "") for name in names)
            row = rows.setdefault(key, {**dict(zip(names, key, strict=True)), "count": 0})
            row["count"] += number(value)
        return busiest(rows.values(), "count")


def number(value: Any) -> float:
    """Return the value of a counter or gauge (a Decimal for money) or the sum of a histogram as a float."""
    found: float = value.sum if isinstance(value, HistogramValue) else value
    return found if isinstance(found, int | float) else float(found)


def quantile_ms(share: float, counts: Iterable[float], bounds: Iterable[float]) -> float | None:
    """Return a quantile in ms of counts between bounds in seconds, None without any. What lies beyond the last bound
    counts as that.
    """
    every = list(counts)
    wanted, below, least = sum(every) * share, 0.0, 0.0
    if not wanted:
        return None
    for count, bound in zip(every, bounds, strict=False):
        if count and below + count >= wanted:
            return round((least + (bound - least) * (wanted - below) / count) * MILLISECONDS, 3)
        below += count
        least = bound
    return least * MILLISECONDS


def busiest(rows: Iterable[Json], key: str) -> list[Json]:
    """Return the MAX_ROWS rows with the highest counts; rows with equal counts are sorted by name."""
    return _in_order(rows, key)[:MAX_ROWS]


def _in_order(rows: Iterable[Json], key: str) -> list[Json]:
    return sorted(rows, key=lambda row: (-row[key], str(row)))


def _add_requests(row: Json, labels: Mapping[str, str], value: Any) -> None:
    row["requests"] += value
    status = labels.get("status", "")
    code = int(status) if status.isascii() and status.isdigit() else SERVER_ERROR
    # The overflow series has no status, so it counts as requests but not as errors.
    known = not is_other(labels)
    row["serverErrors"] += value if known and (code >= SERVER_ERROR or code == 0) else 0
    row["clientErrors"] += value if known and CLIENT_ERROR <= code < SERVER_ERROR else 0


def _add_latency(row: Json, value: HistogramValue) -> None:
    latency = row["latency"]
    latency["counts"] = _added(latency["counts"], value.counts)
    latency["sum"] += value.sum


def _added(counts: list[int], more: Iterable[int]) -> list[int]:
    return [a + b for a, b in zip(counts, more, strict=True)]


def _traffic_row(labels: Mapping[str, str], name: str) -> Json:
    return {
        "name": name,
        "protocol": labels.get("protocol", ""),
        "requests": 0,
        "clientErrors": 0,
        "serverErrors": 0,
        "bytes": 0,
        "latency": {"counts": [0] * (len(BUCKETS["H"]) + 1), "sum": 0.0},
    }


def _model(labels: Mapping[str, str]) -> tuple[str, str]:
    provider = labels.get("gen_ai_system") or labels.get("gen_ai_provider_name") or labels.get("provider", "")
    return provider, labels.get("gen_ai_request_model") or labels.get("model", "")


def _model_row(labels: Mapping[str, str]) -> Json:
    provider, model = _model(labels)
    zeros = {"requests": 0, "inputTokens": 0, "outputTokens": 0, "costUsd": None, "calls": 0, "errors": 0}
    counts = {"firstToken": [0] * (len(BUCKETS["F"]) + 1), "durations": [0] * (len(BUCKETS["D"]) + 1)}
    return {"provider": provider, "model": model, **zeros, **counts}


_NONE: Final[Mapping[tuple[str, str], str]] = {}


def endpoint_rows(
    known: Iterable[tuple[str, str, str]],
    state: Callable[[str, str], Mapping[str, Any]],
    workers: Iterable[Mapping[str, Any]],
    addresses: Mapping[tuple[str, str], str] = _NONE,
) -> list[Json]:
    """Return the endpoints with shared health (backend, owner, key), then the addresses that workers have pools for.

    `addresses` has those of endpoints whose key is none, by owner and key.
    """
    rows = []
    for backend, owner, key in known:
        found = state(owner, key)
        own = {"backend": backend, "endpoint": key, "at": addresses.get((owner, key), key)}
        rows.append({**own, **{name: found[name] for name in _STATE}})
    pools: dict[str, Json] = {}
    for worker in workers:
        for address, pool in (worker.get("pools") or {}).items():
            row = pools.setdefault(address, {"address": address, "open": 0, "idle": 0, "failed": 0})
            for name in ("open", "idle", "failed"):
                row[name] += pool.get(name, 0)
    return [*rows, *(pools[address] for address in sorted(pools))][:MAX_ROWS]


_STATE: Final = ("health", "latency", "pending", "total", "failures", "ejected", "left")
