"""One export to a collector: https://opentelemetry.io/docs/specs/otlp/."""

from __future__ import annotations

import asyncio
import email.utils
import time
from typing import Final, NamedTuple

from headgate.dialect.otlp import rejected
from headgate.ir.telemetry import OtlpTarget
from headgate.policy.environment import Environment
from headgate.policy.remote import GrpcPolicyService, HttpPolicyService
from headgate_engine.link.client import CallError
from headgate_engine.link.grpc_call import GrpcFailure

MAX_ANSWER: Final = 64 * 1024
# Statuses of HTTP and codes of gRPC after which the same export may be sent again.
RETRYABLE_STATUSES: Final = frozenset((429, 502, 503, 504))
RETRYABLE_CODES: Final = frozenset((1, 4, 10, 11, 14, 15))
SUBTYPE: Final = "Otlp"


class Signal(NamedTuple):
    """What is exported, and its method of gRPC."""

    name: str
    method: str


TRACES: Final = Signal("traces", "/opentelemetry.proto.collector.trace.v1.TraceService/Export")
LOGS: Final = Signal("logs", "/opentelemetry.proto.collector.logs.v1.LogsService/Export")
METRICS: Final = Signal("metrics", "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")


class ExportFailure(Exception):
    """The collector did not take an export. `again`: the same may be sent again, after `wait_s` if it says so."""

    def __init__(self, text: str, *, again: bool, wait_s: float | None = None) -> None:
        super().__init__(text)
        self.again = again
        self.wait_s = wait_s


class OtlpTransport:
    """Sends exports of one signal to a collector."""

    def __init__(self, target: OtlpTarget, signal: Signal, env: Environment) -> None:
        self._signal = signal
        self._path = target.path
        self._timeout_s = target.timeout_ms / 1000
        self._headers = [(name, ref.secret.reveal()) for name, ref in target.headers]
        self._grpc = GrpcPolicyService(target.service, env, SUBTYPE) if target.protocol == "grpc" else None
        self._http = HttpPolicyService(target.service, env, SUBTYPE) if target.protocol == "http" else None

    async def send(self, message: bytes) -> tuple[int, str]:
        """Send an export. Return how many of its parts the collector has rejected, and why. Raises ExportFailure."""
        if self._grpc is not None:
            found = await self._by_grpc(self._grpc, message)
        else:
            assert self._http is not None
            found = await self._by_http(self._http, message)
        return rejected(found)

    async def _by_grpc(self, service: GrpcPolicyService, message: bytes) -> bytes:
        try:
            return await service.unary(
                None, self._signal.method, message, timeout_s=self._timeout_s, limit=MAX_ANSWER, headers=self._headers
            )
        except GrpcFailure as error:
            raise ExportFailure(str(error), again=error.code in RETRYABLE_CODES) from None

    async def _by_http(self, service: HttpPolicyService, message: bytes) -> bytes:
        headers = [("content-type", "application/x-protobuf"), *self._headers]
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await service.request(None, "POST", self._path, headers, message)
                try:
                    body = await answer.read(MAX_ANSWER)
                finally:
                    await answer.aclose()
        except (CallError, TimeoutError, ValueError) as error:
            raise ExportFailure(str(error) or "timeout", again=not isinstance(error, ValueError)) from None
        if 200 <= answer.status < 300:
            return body
        wait_s = retry_after(answer.header("retry-after"), time.time())
        raise ExportFailure(f"status {answer.status}", again=answer.status in RETRYABLE_STATUSES, wait_s=wait_s)


def retry_after(text: str | None, now: float) -> float | None:
    """Return the seconds that a `retry-after` field says (RFC 9110 section 10.2.3); None: nothing usable."""
    if text is None:
        return None
    if text.isdigit():
        return float(text[:6])
    try:
        return max(email.utils.parsedate_to_datetime(text).timestamp() - now, 0.0)
    except ValueError:
        return None
