"""Compiles the guardrail policy servers of MCP backends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from headgate.backend.mcp.guardrails.chain import Guardrails
from headgate.backend.mcp.guardrails.processor import Processor
from headgate.ir.mcp_guardrails import GuardrailProcessor
from headgate.pipeline.channels import Channels
from headgate.telemetry.families import BUCKETS, BY_NAME
from headgate.telemetry.metrics import series_key
from headgate_engine.expr.program import Program
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.histogram import Histogram
from headgate_engine.shared.segment import Segment

CALLS: Final = "gw_upstream_call_duration_seconds"
CHECKS: Final = "gw_guardrail_checks_total"
KIND: Final = {"kind": "Policy", "subtype": "Guardrail"}


class GuardrailMeter:
    """Counts checks by phase and action (Allow, Mask, Reject, FailOpen), and observes how long they take."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._calls = Histogram(segment, series_key(CALLS, KIND), BUCKETS[BY_NAME[CALLS].buckets])
        self._checks: dict[tuple[str, str], Counter] = {}

    def observe(self, phase: str, action: str, seconds: float) -> None:
        """Count one check."""
        counter = self._checks.get((phase, action))
        if counter is None:
            key = series_key(CHECKS, {"phase": phase, "action": action})
            counter = self._checks[phase, action] = Counter(self._segment, key)
        counter.add()
        self._calls.observe(seconds)


def compile_guardrails(
    specs: Sequence[GuardrailProcessor],
    channels: Channels,
    program: Callable[[str, str], Program],
    segment: Segment,
) -> Guardrails:
    """Return the client of the policy servers of a backend, in their order."""
    processors = [
        Processor(spec, channels.client(spec.service), [(name, program(text, "mcp")) for name, text in spec.metadata])
        for spec in specs
    ]
    return Guardrails(processors, GuardrailMeter(segment), time.monotonic)
