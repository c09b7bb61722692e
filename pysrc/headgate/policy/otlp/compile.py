"""Compiles traces and log records for a collector to what the engine records them with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headgate.dialect import otlp
from headgate.ir.telemetry import OtlpLog, OtlpMetrics, Tracing
from headgate.policy.environment import Environment
from headgate.policy.otlp.exporter import OtlpExporter
from headgate.policy.otlp.transport import LOGS, METRICS, TRACES, OtlpTransport
from headgate.telemetry.build_info import build_info
from headgate_engine.context.request import make_context
from headgate_engine.expr.values import EvaluationError
from headgate_engine.log.fields import LogFields, shown
from headgate_engine.log.otlp_fields import OtlpFields
from headgate_engine.log.otlp_log import OtlpLogPlan
from headgate_engine.log.protobuf import attribute, message
from headgate_engine.log.spans import Sampling, TracePlan

# The attribute that is the name of the request's span.
SPAN_NAME: Final = "span.name"
SCOPE: Final = "gw"
VERSION: Final = build_info()["version"]
# Tags of the fields of a request message, of ResourceSpans and ResourceLogs, and of ScopeSpans and ScopeLogs.
RESOURCE, SCOPES, OF_SCOPE = 0x0A, 0x12, 0x0A


def compile_tracing(policy: Tracing, env: Environment, exporter: OtlpExporter) -> TracePlan:
    """Return how spans are recorded. The exporter sends them to the collector of the policy."""
    named = dict(policy.attributes).get(SPAN_NAME)
    added = [(key, text) for key, text in policy.attributes if key != SPAN_NAME]
    # What is removed may be added again by an expression: `remove` comes first.
    fields = OtlpFields(policy.remove, _fields(env, policy.filter, added), span=True)
    more = [(key, env.program(text, "log")) for key, text in policy.resources]
    values: dict[str, object] = dict(policy.resource)
    for key, program in more:
        try:
            values[key] = shown(program.evaluate(make_context()))
        except EvaluationError:
            continue
    exporter.transport = OtlpTransport(policy.target, TRACES, env)
    exporter.wrap = _wrapper(values)
    return TracePlan(
        fields,
        exporter.sink,
        _sampling(policy.random_sampling, env),
        _sampling(policy.client_sampling, env),
        None if named is None else env.program(named, "log"),
    )


def compile_log(policy: OtlpLog, env: Environment, exporter: OtlpExporter) -> OtlpLogPlan:
    """Return how requests become log records. The exporter sends them to the collector of the policy."""
    exporter.transport = OtlpTransport(policy.target, LOGS, env)
    exporter.wrap = _wrapper({**dict(policy.resource)})
    return OtlpLogPlan(OtlpFields(policy.remove, _fields(env, policy.filter, policy.add)), exporter.sink)


def compile_metrics(policy: OtlpMetrics, env: Environment, exporter: OtlpExporter) -> None:
    """Have the exporter send metrics to the collector of the policy."""
    exporter.transport = OtlpTransport(policy.target, METRICS, env)
    exporter.wrap = _wrapper({**dict(policy.resource)})


def _fields(
    env: Environment, chosen: str | None, added: list[tuple[str, str]] | tuple[tuple[str, str], ...]
) -> LogFields | None:
    if chosen is None and not added:
        return None
    program = None if chosen is None else env.program(chosen, "log")
    return LogFields(program, [(key, env.program(text, "log")) for key, text in added])


def _sampling(value: float | str, env: Environment) -> Sampling:
    return Sampling(value) if isinstance(value, float) else Sampling(0.0, env.program(value, "gateway"))


def _wrapper(values: dict[str, object]) -> Callable[[bytes], bytes]:
    """Return what makes a message of a batch: resource and scope stand before it."""
    values = {"service.version": VERSION, **values}
    # Attributes of a resource are its field 1, as those of `attribute`.
    told = b"".join(attribute(key, value) for key, value in values.items() if value is not None)
    head = message(RESOURCE, told)
    scope = message(OF_SCOPE, otlp.scope(SCOPE, VERSION))

    def wrap(content: bytes) -> bytes:
        return message(RESOURCE, head + message(SCOPES, scope + content))

    return wrap
