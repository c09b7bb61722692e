"""Compiles `usageHeaders` to a step."""

from __future__ import annotations

from headgate.ir.policy.usage_headers import UsageHeaders
from headgate_engine.steps.usage_headers import UsageHeadersStep


def compile_usage_headers(headers: UsageHeaders) -> UsageHeadersStep:
    """Return the step of `usageHeaders`."""
    return UsageHeadersStep(headers.cost, headers.tokens, headers.overhead, headers.generation)
