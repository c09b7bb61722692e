"""The page on telemetry: its configuration loads, its numbers are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.config.load import TextSource, load
from headgate.config.policy.otlp import LEAST_INTERVAL_MS
from headgate.ir.telemetry import DEFAULT_INTERVAL_MS
from headgate.policy.otlp.exporter import ATTEMPTS, DELAY_S, FLUSH_S
from headgate_engine.link.request_id import MAX_LENGTH
from headgate_engine.log.otlp_sink import BATCH_BYTES, BATCH_COUNT, BATCHES

PAGE = (Path(__file__).parents[2] / "docs/telemetry.md").read_text()


def test_the_configuration_loads() -> None:
    first, metrics, who = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    pushed = load(TextSource(metrics), environ={}).gateway.frontend.metrics
    assert pushed is not None
    assert pushed.interval_ms == 30_000
    assert dict(load(TextSource(who), environ={}).gateway.process.standard_attributes)["gw.group"] == "jwt.department"
    frontend = load(TextSource(first), environ={}).gateway.frontend
    assert frontend.request_ids == "generate"
    assert frontend.tracing is not None
    assert frontend.tracing.random_sampling == 0.01
    assert frontend.access_log.otlp is not None


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"1 to {MAX_LENGTH} visible" in PAGE
    assert f"{DEFAULT_INTERVAL_MS // 1000} s by default, and at least {LEAST_INTERVAL_MS // 1000} s" in PAGE
    assert (DELAY_S, ATTEMPTS, FLUSH_S) == (1.0, 5, 2.0)
    assert "up to four times" in PAGE
    assert f"or {BATCH_COUNT} at once" in PAGE
    assert f"{BATCHES * BATCH_BYTES >> 20} MiB" in PAGE
