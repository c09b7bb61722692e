"""The same traces, log records and metrics through a real OpenTelemetry collector, which passes them on: `make otel-collector`.

HEADGATE_OTELCOL is its program; without it there is nothing to run.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.conftest import free_port
from tests.end_to_end.otlp_rig import PATIENCE, GrpcCollector
from tests.end_to_end.test_otlp_logs import test_requests_are_log_records
from tests.end_to_end.test_otlp_metrics import (
    test_exemplars_and_exponential_buckets,
    test_metrics_are_sent_at_intervals,
    test_the_last_numbers_are_sent_at_the_end,
)
from tests.end_to_end.test_traces import (
    backend,
    test_a_client_begins_the_trace,
    test_a_failure_is_told,
    test_a_request_and_its_attempt_are_spans,
    test_a_retry_links_to_the_attempt_before_it,
    test_attributes_are_added_and_removed,
    test_bytes_that_are_no_text_are_replaced,
)

PROGRAM = os.environ.get("HEADGATE_OTELCOL", "")
pytestmark = [pytest.mark.warm, pytest.mark.skipif(not PROGRAM, reason="make otel-collector builds the collector")]
__all__ = [
    "backend", "test_a_client_begins_the_trace", "test_a_failure_is_told", "test_a_request_and_its_attempt_are_spans",
    "test_a_retry_links_to_the_attempt_before_it", "test_attributes_are_added_and_removed",
    "test_bytes_that_are_no_text_are_replaced", "test_exemplars_and_exponential_buckets", "test_metrics_are_sent_at_intervals",
    "test_requests_are_log_records", "test_the_last_numbers_are_sent_at_the_end",
]  # fmt: skip

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:{grpc}"}}
      http: {{endpoint: "127.0.0.1:{http}"}}
exporters:
  debug: {{verbosity: detailed}}
  otlp:
    endpoint: "127.0.0.1:{next}"
    tls: {{insecure: true}}
    sending_queue: {{enabled: false}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [debug, otlp]}}
    logs: {{receivers: [otlp], exporters: [debug, otlp]}}
    metrics: {{receivers: [otlp], exporters: [debug, otlp]}}
"""


class RealCollector:
    """A collector before one of the tests; what it passes on is what the tests look at."""

    def __init__(self, protocol: str, folder: Path) -> None:
        self.protocol = protocol
        self.behind = GrpcCollector()
        ports = {"grpc": free_port(), "http": free_port()}
        self.port = ports[protocol]
        path = folder / "collector.yaml"
        path.write_text(CONFIG.format(**ports, next=self.behind.port))
        self.log = folder / "collector.log"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen([PROGRAM, "--config", str(path)], stdout=out, stderr=out)
        deadline = time.monotonic() + PATIENCE
        while b"Everything is ready" not in self.log.read_bytes():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.behind.stop()


@pytest.fixture(params=["grpc", "http"])
def collector(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealCollector]:
    found = RealCollector(request.param, tmp_path)
    yield found
    found.stop()


@pytest.fixture
def grpc_collector(tmp_path: Path) -> Iterator[RealCollector]:
    found = RealCollector("grpc", tmp_path)
    yield found
    found.stop()


def test_the_configuration_of_deploy_is_one() -> None:
    config = Path(__file__).parents[2] / "deploy" / "otel" / "collector.yaml"
    environment = {**os.environ, "OTLP_ENDPOINT": "traces.example:4317"}
    subprocess.run([PROGRAM, "validate", "--config", str(config)], env=environment, check=True)
