"""`inferenceRouting` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.extras import missing
from headgate.config.policy.remote_service import dump_target
from headgate.errors import Problem
from headgate.ir.policy.inference_routing import DEFAULT_TIMEOUT_MS, InferenceRouting

LIBRARY = "envoy.service.ext_proc"


def parse(context: Context, record: Record) -> InferenceRouting | None:
    """Return the policy; None after a report."""
    if (message := missing(LIBRARY)) is not None:
        context.fault(Problem.ENVIRONMENT, record, "", message)
    picker = record.get("endpointPicker")
    if context.directory is None or picker is None:
        return None
    service = context.directory.remote_service(picker)
    if service is None:
        return None
    return InferenceRouting(
        picker=service,
        validated=record.get("destinationMode", "validated") == "validated",
        fail_open=record.get("failureMode") == "failOpen",
        timeout_ms=service.policies.request_timeout_ms or DEFAULT_TIMEOUT_MS,
    )


def dump(policy: InferenceRouting) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    return {
        "endpointPicker": dump_target(policy.picker),
        "destinationMode": "validated" if policy.validated else "passthrough",
        "failureMode": "failOpen" if policy.fail_open else "failClosed",
    }
