"""One policy server: which methods it is asked about, what it is told, and what it decided."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import DecodeError

from headgate.backend.contract import Call
from headgate.backend.mcp.guardrails.header_fields import FieldFilter
from headgate.dialect.mcp.ext_mcp import McpRequest, McpRequestResult, McpResponse, McpResponseResult
from headgate.dialect.mcp.method_keys import NO_REQUEST_PHASE, most_specific
from headgate.dialect.mcp.methods import REQUESTS
from headgate.dialect.protobuf import fill_struct, struct_values
from headgate.ir.mcp_guardrails import GuardrailProcessor
from headgate.net.grpc import GrpcClient, GrpcError
from headgate_engine.expr.functions import json_text
from headgate_engine.expr.program import Program
from headgate_engine.expr.values import EvaluationError

logger = logging.getLogger("headgate.mcp")

# Results of targets have 16 MiB at most; a changed one may have some more.
MAX_REPLY: Final = 20 * 1024 * 1024
# JSON-RPC codes by the number of AuthorizationError.Code; all others are internal errors.
CODES: Final = {1: -32001, 2: -32003, 3: -32600}
INTERNAL: Final = -32603


class Violation(Exception):
    """What a policy server says does not follow the protocol."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A refusal. `data`: more about it, decoded; None when there is none."""

    code: int
    reason: str
    data: object = None


@dataclass(slots=True)
class Decision:
    """What a policy server says. `mutated`: JSON in place of params or result; None: those are as they were."""

    mutated: bytes | None = None
    rejection: Rejection | None = None
    sets: Sequence[Any] = ()
    removes: Sequence[str] = ()
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Asked:
    """What a question is about. `body`: JSON of params or result, None where there is no such part."""

    call: Call
    targets: Sequence[str]
    method: str
    body: bytes | None


class Processor:
    """`client` calls the server; `metadata` are the compiled expressions by name."""

    def __init__(self, spec: GuardrailProcessor, client: GrpcClient, metadata: Sequence[tuple[str, Program]]) -> None:
        self.name = spec.service.name
        self.fail_open = spec.fail_open
        self._spec = spec
        self._client = client
        self._metadata = tuple(metadata)
        self._filter = FieldFilter(spec.allowed, spec.disallowed)
        self._phases = {method: self._phase(method) for method in REQUESTS}
        self._fields = call_fields(spec)

    def _phase(self, method: str) -> str:
        phases = dict(self._spec.methods)
        key = most_specific(phases, method)
        return "off" if key is None else phases[key]

    def phase(self, method: str) -> str:
        """Return off, request, response or full."""
        return self._phases.get(method) or self._phase(method)

    def checks_request(self, method: str) -> bool:
        """Tell whether it is asked before a request is served."""
        return method not in NO_REQUEST_PHASE and self.phase(method) in ("request", "full")

    def checks_response(self, method: str) -> bool:
        """Tell whether it is asked before a result is told."""
        return self.phase(method) in ("response", "full")

    async def check_request(self, asked: Asked) -> Decision:
        """Ask about a request; raises GrpcError and Violation."""
        question = McpRequest(service_names=asked.targets, method=asked.method)
        if asked.body is not None:
            question.mcp_request = asked.body
        for name, value in self._filter.told(asked.call):
            question.headers.add(key=name, value=value)
        self._add_context(question, asked.call)
        found = await self._ask(self._spec.check_request, question, McpRequestResult)
        decision = _decision(found)
        if decision.rejection is None:
            decision.sets, decision.removes = found.header_mutation.set, found.header_mutation.remove
            decision.metadata = struct_values(found.metadata)
        return decision

    async def check_response(self, asked: Asked) -> Decision:
        """Ask about a result; raises GrpcError and Violation."""
        question = McpResponse(service_names=asked.targets, method=asked.method, mcp_response=asked.body or b"")
        self._add_context(question, asked.call)
        return _decision(await self._ask(self._spec.check_response, question, McpResponseResult))

    def _add_context(self, question: Any, call: Call) -> None:
        """Tell what the expressions give; one that fails has no entry."""
        if not self._metadata or call.context is None:
            return
        values = {}
        for name, program in self._metadata:
            with contextlib.suppress(EvaluationError):
                values[name] = json.loads(json_text(program.evaluate(call.context)))
        question.metadata_context.SetInParent()
        fill_struct(question.metadata_context, values)

    async def _ask(self, path: str, question: Any, kind: Any) -> Any:
        text = await self._client.unary(
            path,
            question.SerializeToString(),
            timeout_s=self._spec.timeout_ms / 1000,
            metadata=self._fields,
            limit=MAX_REPLY,
        )
        try:
            return kind.FromString(text)
        except (DecodeError, ValueError) as error:  # also text that is no UTF-8
            raise Violation(f"the answer is no {kind.DESCRIPTOR.name}: {error}") from None


def call_fields(spec: GuardrailProcessor) -> list[tuple[str, str]]:
    """Return the header fields of each call: the service's credential, then what its policies add and set."""
    policies, found = spec.service.policies, []
    auth = None if policies.auth is None else policies.auth.fixed_header
    if auth is not None:
        found.append((auth.location.name.lower(), auth.location.prefix + auth.key.secret.reveal()))
    modifier = policies.request_headers
    if modifier is not None:
        found += [(name.lower(), value) for name, value in modifier.add]
        gone = {name.lower() for name, _ in modifier.set} | {name.lower() for name in modifier.remove}
        found = [one for one in found if one[0] not in gone]
        removed = {name.lower() for name in modifier.remove}
        found += [(name.lower(), value) for name, value in modifier.set if name.lower() not in removed]
    return found


def _decision(found: Any) -> Decision:
    match found.WhichOneof("result"):
        case "pass":
            return Decision()
        case "mutated":
            return Decision(mutated=found.mutated)
        case "error":
            return Decision(rejection=_rejection(found.error))
    raise Violation("the answer has no result")


def _rejection(error: Any) -> Rejection:
    data = None
    if error.HasField("mcp_error"):
        try:
            data = json.loads(error.mcp_error)
        except ValueError:
            logger.warning("policy server: mcp_error is not JSON")
    return Rejection(CODES.get(error.code, INTERNAL), error.reason or "rejected by policy", data)


__all__ = ["Asked", "Decision", "GrpcError", "Processor", "Rejection", "Violation"]
