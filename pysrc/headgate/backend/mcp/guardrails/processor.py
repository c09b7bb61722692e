"""One policy server: the methods it is called for, the calls, and its decisions."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

from google.protobuf.message import DecodeError

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.guardrails.header_fields import FieldFilter
from headgate.dialect.mcp.ext_mcp import McpRequest, McpRequestResult, McpResponse, McpResponseResult
from headgate.dialect.mcp.method_keys import NO_REQUEST_PHASE, most_specific
from headgate.dialect.mcp.methods import REQUESTS
from headgate.dialect.protobuf import fill_struct, struct_values
from headgate.document.lazy_dataclass import dataclass
from headgate.ir.mcp_guardrails import GuardrailProcessor
from headgate.policy.remote import GrpcPolicyService
from headgate_engine.expr.functions import json_text
from headgate_engine.expr.program import Program
from headgate_engine.expr.values import EvaluationError
from headgate_engine.link.grpc_call import GrpcFailure

logger = logging.getLogger("headgate.mcp")

# Results of targets are limited to 16 MiB; changed ones may be slightly larger.
MAX_REPLY: Final = 20 * 1024 * 1024
# AuthorizationError.Code to JSON-RPC error code; other codes are internal errors.
CODES: Final = {1: -32001, 2: -32003, 3: -32600}
INTERNAL: Final = -32603


class Violation(Exception):
    """A policy server violates its protocol."""


@dataclass(frozen=True, slots=True)
class ProcessorRejection:
    """A refusal. `data`: details as a JSON value, None without any."""

    code: int
    reason: str
    data: object = None


@dataclass(slots=True)
class Decision:
    """A policy server's decision. `mutated`: JSON that replaces params or result, None to keep them."""

    mutated: bytes | None = None
    rejection: ProcessorRejection | None = None
    sets: Sequence[Any] = ()
    removes: Sequence[str] = ()
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ProcessorCheck:
    """The subject of a check. `body`: JSON of params or result, None if there is none."""

    call: BackendCall
    targets: Sequence[str]
    method: str
    body: bytes | None


class Processor:
    """One policy server. `service` calls it; `metadata` are compiled expressions by name."""

    def __init__(
        self, spec: GuardrailProcessor, service: GrpcPolicyService, metadata: Sequence[tuple[str, Program]]
    ) -> None:
        self.name = spec.service.name
        self.fail_open = spec.fail_open
        self._spec = spec
        self._service = service
        self._metadata = tuple(metadata)
        self._filter = FieldFilter(spec.allowed, spec.disallowed)
        self._phases = {method: self._phase(method) for method in REQUESTS}

    def _phase(self, method: str) -> str:
        phases = dict(self._spec.methods)
        key = most_specific(phases, method)
        return "off" if key is None else phases[key]

    def phase(self, method: str) -> str:
        """Return off, request, response or full."""
        return self._phases.get(method) or self._phase(method)

    def checks_request(self, method: str) -> bool:
        """Return True if the policy server checks requests of a method."""
        return method not in NO_REQUEST_PHASE and self.phase(method) in ("request", "full")

    def checks_response(self, method: str) -> bool:
        """Return True if the policy server checks results of a method."""
        return self.phase(method) in ("response", "full")

    async def check_request(self, asked: ProcessorCheck) -> Decision:
        """Check a request; raises GrpcFailure and Violation."""
        question = McpRequest(service_names=asked.targets, method=asked.method)
        if asked.body is not None:
            question.mcp_request = asked.body
        for name, value in self._filter.fields_to_send(asked.call):
            question.headers.add(key=name, value=value)
        self._add_context(question, asked.call)
        found = await self._ask(asked.call, self._spec.check_request, question, McpRequestResult)
        decision = _decision(found)
        if decision.rejection is None:
            decision.sets, decision.removes = found.header_mutation.set, found.header_mutation.remove
            decision.metadata = struct_values(found.metadata)
        return decision

    async def check_response(self, asked: ProcessorCheck) -> Decision:
        """Check a result; raises GrpcFailure and Violation."""
        question = McpResponse(service_names=asked.targets, method=asked.method, mcp_response=asked.body or b"")
        self._add_context(question, asked.call)
        return _decision(await self._ask(asked.call, self._spec.check_response, question, McpResponseResult))

    def _add_context(self, question: Any, call: BackendCall) -> None:
        """Add the values of the expressions; a failing expression adds none."""
        if not self._metadata or call.context is None:
            return
        values = {}
        for name, program in self._metadata:
            with contextlib.suppress(EvaluationError):
                values[name] = json.loads(json_text(program.evaluate(call.context)))
        question.metadata_context.SetInParent()
        fill_struct(question.metadata_context, values)

    async def _ask(self, call: BackendCall, path: str, question: Any, kind: Any) -> Any:
        seconds = self._spec.timeout_ms / 1000
        message = question.SerializeToString()
        text = await self._service.unary(call.context, path, message, timeout_s=seconds, limit=MAX_REPLY)
        try:
            return kind.FromString(text)
        except (DecodeError, ValueError) as error:  # ValueError: text that is not UTF-8
            raise Violation(f"the answer is no {kind.DESCRIPTOR.name}: {error}") from None


def _decision(found: Any) -> Decision:
    match found.WhichOneof("result"):
        case "pass":
            return Decision()
        case "mutated":
            return Decision(mutated=found.mutated)
        case "error":
            return Decision(rejection=_rejection(found.error))
    raise Violation("the answer has no result")


def _rejection(error: Any) -> ProcessorRejection:
    data = None
    if error.HasField("mcp_error"):
        try:
            data = json.loads(error.mcp_error)
        except ValueError:
            logger.warning("policy server: mcp_error is not JSON")
    return ProcessorRejection(CODES.get(error.code, INTERNAL), error.reason or "rejected by policy", data)


__all__ = ["Decision", "GrpcFailure", "Processor", "ProcessorCheck", "ProcessorRejection", "Violation"]
