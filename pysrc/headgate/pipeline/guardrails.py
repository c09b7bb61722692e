"""Compiles the guardrail policy servers of MCP backends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headgate.backend.mcp.guardrails.chain import Guardrails
from headgate.backend.mcp.guardrails.processor import Processor
from headgate.ir.mcp_guardrails import GuardrailProcessor
from headgate.policy.environment import Environment
from headgate.policy.remote import GrpcPolicyService
from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment

CHECKS: Final = "gw_guardrail_checks_total"
# The `kind` of a processor; `guard` of a check by a guard of models is the kind of that guard.
KIND: Final = "remote"


class GuardrailMeter:
    """Counts checks by phase and action (Allow, Mask, Reject, FailOpen)."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._checks: dict[tuple[str, str], Counter] = {}

    def count(self, phase: str, action: str) -> None:
        """Count one check."""
        counter = self._checks.get((phase, action))
        if counter is None:
            key = series_key(CHECKS, {"phase": phase, "action": action, "guard": KIND})
            counter = self._checks[phase, action] = Counter(self._segment, key)
        counter.add()


def compile_guardrails(specs: Sequence[GuardrailProcessor], env: Environment) -> Guardrails:
    """Return the client of the policy servers of a backend, in their order."""
    processors = []
    for spec in specs:
        metadata = [(name, env.program(text, "mcp")) for name, text in spec.metadata]
        processors.append(Processor(spec, GrpcPolicyService(spec.service, env, "Guardrail"), metadata))
    return Guardrails(processors, GuardrailMeter(env.segment))
