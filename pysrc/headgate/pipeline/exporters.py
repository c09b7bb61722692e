"""Exporters of spans, log records and metrics of a worker; those that a new configuration still has are taken over."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from headgate.pipeline.log_formats import Pairs, with_standard
from headgate.policy.claims import RouteClaims
from headgate.telemetry.metrics import series_key
from headgate_engine.link.worker import Worker
from headgate_engine.log.otlp_sink import OtlpSink
from headgate_engine.shared.counters import Counter

if TYPE_CHECKING:
    from headgate.ir.frontend import Frontend
    from headgate.ir.telemetry import OtlpLog, OtlpMetrics, OtlpTarget, Tracing
    from headgate.policy.environment import Environment
    from headgate.policy.otlp.exporter import OtlpExporter
    from headgate.policy.otlp.metrics import MetricsExporter
    from headgate_engine.log.otlp_log import OtlpLogPlan
    from headgate_engine.log.spans import TracePlan

EXPORTED: Final = "gw_otlp_exported_total"
DROPPED: Final = "gw_otlp_dropped_total"


class Exporters:
    """The exporters of one configuration, by signal and collector."""

    def __init__(self, worker: Worker, previous: Exporters | None) -> None:
        self._worker = worker
        self._previous = {} if previous is None else previous.by_target
        self.by_target: dict[tuple[str, OtlpTarget], OtlpExporter] = {}
        # By what a port says of each.
        self._plans: dict[tuple[Tracing | None, OtlpLog | None], tuple[TracePlan | None, OtlpLogPlan | None]] = {}
        self._policy: OtlpMetrics | None = None
        self._metrics: MetricsExporter | None = None

    def _get(self, signal: str, target: OtlpTarget) -> OtlpExporter:
        key = (signal, target)
        found = self._previous.get(key)
        if found is None:
            from headgate.policy.otlp.exporter import OtlpExporter  # with what needs it

            found = OtlpExporter(
                OtlpSink(self._counter(DROPPED, signal)), self._worker.spawn, self._counter(EXPORTED, signal)
            )
        self.by_target[key] = found
        return found

    def _counter(self, name: str, signal: str) -> Counter:
        return Counter(self._worker.segment, series_key(name, {"signal": signal}))

    def plans(
        self, frontend: Frontend, env: Environment, standard: Pairs = ()
    ) -> tuple[TracePlan | None, OtlpLogPlan | None]:
        """Return how spans and log records of a port are recorded. `standard`: attributes that both have, unless
        `remove` or one of the same key leaves them out."""
        key = tracing, log = frontend.tracing, frontend.access_log.otlp
        if key not in self._plans:
            claims, env.claims = env.claims, RouteClaims()
            if standard and tracing is not None:
                tracing = replace(tracing, attributes=with_standard(standard, tracing.attributes, tracing.remove))
            if standard and log is not None:
                log = replace(log, add=with_standard(standard, log.add, log.remove))
            self._plans[key] = (
                None if tracing is None else self._tracing(tracing, env), None if log is None else self._log(log, env),
            )  # fmt: skip
            if frontend.metrics is not None and self._metrics is None:
                self._set_up_metrics(frontend.metrics, env)
            env.claims = claims
        return self._plans[key]

    def _tracing(self, policy: Tracing, env: Environment) -> TracePlan:
        from headgate.policy.otlp.compile import compile_tracing  # protobuf: 2 MB

        return compile_tracing(policy, env, self._get("traces", policy.target))

    def _log(self, policy: OtlpLog, env: Environment) -> OtlpLogPlan:
        from headgate.policy.otlp.compile import compile_log

        return compile_log(policy, env, self._get("logs", policy.target))

    def _set_up_metrics(self, policy: OtlpMetrics, env: Environment) -> None:
        from headgate.policy.otlp.compile import compile_metrics
        from headgate.policy.otlp.metrics import MetricsExporter

        exporter = self._get("metrics", policy.target)
        compile_metrics(policy, env, exporter)
        self._policy, self._metrics = policy, MetricsExporter(exporter, self._worker.spawn)

    def push_metrics(self, parts: list[tuple[bytes, int]]) -> None:
        """Send metrics, parts as headgate.telemetry.otlp_metrics makes them, to the collector, if there is one."""
        if self._metrics is not None:
            from headgate.telemetry.otlp_metrics import MetricsPart

            self._metrics.push(MetricsPart(*part) for part in parts)

    def close_unused(self, current: Exporters) -> None:
        """End the exporters that `current` has not taken over; they send what they have, as far as they get."""
        current._previous = {}
        for key, exporter in self.by_target.items():
            if current.by_target.get(key) is not exporter:
                self._worker.spawn("otlp flush", exporter.aclose())

    async def aclose(self) -> None:
        """Send what waits, at the end of the worker, and what all workers have counted by then."""
        if self._metrics is not None and self._policy is not None:
            await self._metrics.finish(self._worker.segment, self._policy)
        await asyncio.gather(*(exporter.aclose() for exporter in self.by_target.values()))
