"""`config.histograms`: what the metrics page shows in each format, and what a Prometheus server makes of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.end_to_end.running import Gateway, free_port
from tests.headgate.admin.metrics_protobuf_rig import families

from headgate.admin import metrics_protobuf
from headgate.telemetry.metrics import OPENMETRICS_TYPE

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- policies: {directResponse: {status: 200, body: hi}}
"""
FAMILY = "gw_request_duration_seconds"
REQUESTS = 5
PATIENCE_S = 60


def started(gateway: Callable[..., Gateway], kind: str) -> Gateway:
    running = gateway(CONFIG, settings=f"  histograms: {kind}\n")
    for _ in range(REQUESTS):
        assert running.fetch(running.url)[0] == 200
    running.wait_metric(f"{FAMILY}_count", REQUESTS)
    return running


def page(running: Gateway, accept: str) -> tuple[str, bytes]:
    import httpx

    answer = httpx.get(f"http://127.0.0.1:{running.stats}/metrics", headers={"accept": accept}, timeout=60)
    return answer.headers["content-type"], answer.content


def of_protobuf(running: Gateway) -> Any:
    kind, data = page(running, "application/vnd.google.protobuf")
    assert kind == metrics_protobuf.CONTENT_TYPE
    [metric] = next(one for one in families(data) if one.name == FAMILY).metric
    return metric.histogram


def bounds_in_text(running: Gateway) -> list[str]:
    """The bounds of the buckets, which must be the same in both formats of text."""
    kind, data = page(running, "application/openmetrics-text")
    assert kind == OPENMETRICS_TYPE
    family = next(one for one in text_string_to_metric_families(data.decode()) if one.name == FAMILY)
    found = [one.labels["le"] for one in family.samples if one.name.endswith("_bucket")]
    plain = page(running, "text/plain")[1].decode()
    assert plain.count(f"{FAMILY}_bucket") == len(found)
    return found


@pytest.mark.parametrize(("kind", "classic", "native"), [("classic", True, False), ("native", False, True), ("Both", True, True)])
def test_the_setting_says_which_buckets_are_shown(gateway: Callable[..., Gateway], kind: str, classic: bool, native: bool) -> None:
    running = started(gateway, kind)
    histogram = of_protobuf(running)
    assert histogram.sample_count == REQUESTS
    assert bool(histogram.bucket) == classic
    assert bool(histogram.positive_span) == native
    if native:
        assert (histogram.schema, sum_of(histogram)) == (3, REQUESTS)
    bounds = bounds_in_text(running)
    assert (bounds == ["+Inf"]) == (not classic)


def sum_of(histogram: Any) -> int:
    total = count = 0
    for delta in histogram.positive_delta:
        count += delta
        total += count
    return total + int(histogram.zero_count)


def test_a_change_waits_for_the_next_start_and_says_so(gateway: Callable[..., Gateway]) -> None:
    running = started(gateway, "classic")
    # The rig writes `settings` in front of the text.
    running.path.write_text(running.path.read_text().replace("histograms: classic", "histograms: native"))
    running.wait_log("config.histograms: a change takes effect at the next start")
    assert of_protobuf(running).bucket
    assert len(bounds_in_text(running)) > 1


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Callable[[int], Callable[[str], list[Any]]]]:
    """`prometheus(port)` scrapes a port; what it gives evaluates a query."""
    started: list[subprocess.Popen[bytes]] = []

    def start(port: int) -> Callable[[str], list[Any]]:
        config, own = tmp_path / "prometheus.yml", free_port()
        target = {"job_name": "headgate", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [target]}))
        started.append(subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}",
             f"--web.listen-address=127.0.0.1:{own}", "--enable-feature=native-histograms"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ))  # fmt: skip

        def ask(query: str) -> list[Any]:
            import httpx

            text = urllib.parse.quote(query)
            try:
                answer = httpx.get(f"http://127.0.0.1:{own}/api/v1/query?query={text}", timeout=60)
            except httpx.TransportError:  # it has not begun
                return []
            return answer.json()["data"]["result"] if answer.status_code == 200 else []

        return ask

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus")
@pytest.mark.parametrize("kind", ["native", "classic"])
def test_a_prometheus_server_reads_them(gateway: Callable[..., Gateway], prometheus: Any, kind: str) -> None:
    running = started(gateway, kind)
    ask = prometheus(running.stats)
    query = f"histogram_count({FAMILY})" if kind == "native" else f'{FAMILY}_bucket{{le="+Inf"}}'
    deadline = time.monotonic() + PATIENCE_S
    while not (found := ask(query)):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert float(found[0]["value"][1]) == REQUESTS
    buckets = FAMILY if kind == "native" else f"{FAMILY}_bucket"
    [median] = ask(f"histogram_quantile(0.5, {buckets})")
    assert 0 < float(median["value"][1]) < PATIENCE_S
