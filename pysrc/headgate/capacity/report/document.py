"""The report as a JSON document; docs/schema/bench-report.schema.json describes it."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any, Final

from headgate.capacity.errors import BenchError
from headgate.capacity.figures import Second, StepFigures, Usage
from headgate.capacity.saturation import SearchResult
from headgate_engine.load.histogram import LatencyHistogram

FORMAT: Final = "headgate-bench/1"
PERCENTILES: Final = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
Json = dict[str, Any]


def _ms(ns: float) -> float:
    return round(ns / 1e6, 4)


def times(histogram: LatencyHistogram) -> Json | None:
    """Return the figures of a histogram in ms; None for an empty one."""
    if histogram.count == 0:
        return None
    found: Json = {name: _ms(histogram.percentile(percent)) for name, percent in PERCENTILES.items()}
    return {
        "count": histogram.count, "min": _ms(histogram.least), "mean": _ms(histogram.mean),
        "deviation": _ms(histogram.deviation),
        **found, "max": _ms(histogram.most),
    }  # fmt: skip


def _target(step: StepFigures, usage: Usage | None) -> Json | None:
    if usage is None:
        return None
    each = usage.cpu_s * 1e6 / step.total if step.total else None
    return {
        "cpu_s": round(usage.cpu_s, 3), "processors": round(usage.cpu_s / step.seconds, 3),
        "processes": usage.processes,
        "cpu_us_per_request": None if each is None else round(each, 2), "peak_mb": round(usage.peak_kb / 1024, 1),
    }  # fmt: skip


def _second(one: Second) -> Json:
    return {
        "second": one.at,
        "good": one.good,
        "failed": one.failed,
        "p50": _ms(one.p50),
        "p99": _ms(one.p99),
        "max": _ms(one.most),
    }


def step_of(step: StepFigures) -> Json:
    """Return one step."""
    each = step.generator_cpu_s * 1e6 / step.total if step.total else None
    tokens = {"count": step.tokens, "per_second": round(step.tokens / step.seconds, 1)} if step.tokens else None
    return {
        "rate": round(step.rate, 3) or None, "seconds": step.seconds, "achieved": round(step.achieved, 2),
        "good": step.good, "failed": step.failed, "error_share": round(step.error_share, 6),
        "errors": dict(step.errors.most_common()),
        "bytes_read": step.bytes_read, "reconnects": step.reconnects, "verdict": step.verdict,
        "latency_ms": times(step.latency), "first_token_ms": times(step.first_token),
        "between_tokens_ms": times(step.between),
        "tokens": tokens, "target": _target(step, step.target),
        "generator": {
            "cpu_us_per_request": None if each is None else round(each, 2), "busy": round(step.generator_busy, 3),
            "lag_ms": times(step.lag),
        },
        "histogram_ns": step.latency.pairs(), "series_ms": [_second(one) for one in step.series],
    }  # fmt: skip


def machine() -> Json:
    """Return what the figures depend on."""
    model = ""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        pass
    return {
        "cpu": model or platform.machine(), "cpus": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release()}",
        "load_average": round(os.getloadavg()[0], 2),
    }  # fmt: skip


def document_of(workload: Json, steps: list[StepFigures], search: SearchResult | None) -> Json:
    """Return the whole report."""
    from headgate.telemetry.build_info import build_info

    return {
        "format": FORMAT,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "version": build_info()["version"],
        "machine": machine(),
        "workload": workload,
        "steps": [step_of(step) for step in steps],
        "saturation": None
        if search is None
        else {"knee": search.knee and round(search.knee, 2), "limit": search.limit},
    }


def read(path: str) -> Json:
    """Read a report. Raises BenchError if it is none."""
    try:
        found = json.loads(Path(path).read_text())
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise BenchError(f"{path}: no JSON: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise BenchError(f"{path}: no report of headgate bench ({FORMAT})")
    return found
