"""Reads the metrics page of a gateway of a test."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.end_to_end.running import PATIENCE, Gateway


def samples(running: Gateway, name: str, **labels: str) -> list[Any]:
    """The samples of this name with these labels, as the reference parser of OpenMetrics reads them."""
    answer = httpx.get(
        f"http://127.0.0.1:{running.stats}/metrics", headers={"accept": "application/openmetrics-text"}, timeout=PATIENCE
    )
    found = (one for family in text_string_to_metric_families(answer.text) for one in family.samples)
    return [one for one in found if one.name == name and labels.items() <= one.labels.items()]


def total(running: Gateway, name: str, **labels: str) -> float:
    return sum(one.value for one in samples(running, name, **labels))


def until(ready: Callable[[], bool], what: Callable[[], object] = str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)
