"""`mcpGuardrails` to the IR and back. What a processor names is looked up when a backend uses it."""

from __future__ import annotations

from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.expression import check_map
from headgate.config.policy.remote_service import dump_policies, dump_target
from headgate.dialect.mcp.method_keys import doubts
from headgate.document.lazy_dataclass import dataclass
from headgate.errors import Problem
from headgate.ir.mcp_guardrails import CHECK_REQUEST, CHECK_RESPONSE, GuardrailProcessor
from headgate.ir.remote_service import RemoteService

MAX_METHODS: Final = 64
MAX_METADATA: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A processor whose server is not looked up yet, and the entry that names it."""

    processor: GuardrailProcessor
    record: Record


def parse(context: Context, record: Record) -> tuple[Draft, ...]:
    """Return the processors in their order."""
    return tuple(_draft(context, entry) for entry in record.records("processors"))


def _draft(context: Context, record: Record) -> Draft:
    methods = record.get("methods") or {}
    for key, most in (("methods", MAX_METHODS), ("metadata", MAX_METADATA)):
        if len(record.get(key) or {}) > most:
            context.fault(Problem.VALUE, record, key, f"at most {most} entries")
    if all(phase == "off" for phase in methods.values()):
        context.warnings.append(f"{record.path}: no method has a phase, so this processor never runs")
    for key, phase in methods.items():
        if (doubt := doubts(key, phase)) is not None:
            context.warnings.append(f"{record.path}.methods: {doubt}")
    filters, paths = record.get("requestHeaders"), record.get("grpc")
    processor = GuardrailProcessor(
        service=RemoteService(kind="host", name=""),
        methods=tuple(methods.items()),
        fail_open=record.get("failureMode") == "failOpen",
        metadata=check_map(context, record, "metadata", "mcp"),
        allowed=_names(filters, "allowed"),
        disallowed=_names(filters, "disallowed"),
        check_request=CHECK_REQUEST if paths is None else paths.get("checkRequest", CHECK_REQUEST),
        check_response=CHECK_RESPONSE if paths is None else paths.get("checkResponse", CHECK_RESPONSE),
    )
    return Draft(processor=processor, record=record)


def _names(filters: Record | None, key: str) -> tuple[str, ...]:
    return () if filters is None else tuple(dict.fromkeys(filters.get(key) or ()))


def dump(processors: tuple[GuardrailProcessor, ...]) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    return {"processors": [_dump(one) for one in processors]}


def _dump(processor: GuardrailProcessor) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kind": "remote",
        **dump_target(processor.service),
        "methods": dict(processor.methods),
        "failureMode": "failOpen" if processor.fail_open else "failClosed",
    }
    if processor.metadata:
        found["metadata"] = dict(processor.metadata)
    if processor.allowed or processor.disallowed:
        kinds = (("allowed", processor.allowed), ("disallowed", processor.disallowed))
        found["requestHeaders"] = {key: list(names) for key, names in kinds if names}
    found["grpc"] = {"checkRequest": processor.check_request, "checkResponse": processor.check_response}
    found["policies"] = dump_policies(processor.service, processor.timeout_ms)
    return found
