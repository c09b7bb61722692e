"""The policy servers of a backend, called one after the other for a request and its result."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.failure import McpFailure
from headgate.backend.mcp.guardrails.header_fields import Fields, change
from headgate.backend.mcp.guardrails.processor import Decision, GrpcFailure, Processor, ProcessorCheck, Violation
from headgate.dialect.mcp.edit import raw_member
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, NotAMessage, RpcMessage, parse
from headgate.policy.remote import status_name
from headgate_engine.context.request import log_extra

logger = logging.getLogger("headgate.mcp")

VARIABLE: Final = "mcpGuardrails"
# Required members of changed params, with their types, by method.
PARAMS: Final[dict[str, tuple[tuple[str, type], ...]]] = {
    "tools/call": (("name", str),),
    "prompts/get": (("name", str),),
    "resources/read": (("uri", str),),
}
MAPS: Final = ("arguments", "_meta")
RESULTS: Final[dict[str, tuple[str, type]]] = {
    "completion/complete": ("completion", dict),
    "initialize": ("protocolVersion", str),
    "prompts/get": ("messages", list),
    "prompts/list": ("prompts", list),
    "resources/list": ("resources", list),
    "resources/read": ("contents", list),
    "resources/templates/list": ("resourceTemplates", list),
    "tools/call": ("content", list),
    "tools/list": ("tools", list),
}
# Members of results that are not final.
UNFINISHED: Final = ("task", "inputRequests")


class Meter(Protocol):
    """Counts the decisions of policy servers."""

    def count(self, phase: str, action: str) -> None: ...


class Guardrails:
    """The policy servers of a backend in their order."""

    def __init__(self, processors: Sequence[Processor], meter: Meter) -> None:
        self.processors = tuple(processors)
        self.meter = meter

    def check(self, call: BackendCall, message: RpcMessage, fields: Fields) -> Check:
        """Return the check of one request. It keeps its policy servers across a reload."""
        return Check(self, call, message.method or "", fields)


class Check:
    """The check of one request and its result. Header changes are applied to `fields`, which the targets receive."""

    def __init__(self, chain: Guardrails, call: BackendCall, method: str, fields: Fields) -> None:
        self._chain = chain
        self._call = call
        self._method = method
        self._fields = fields

    def about(self, kind: str, target: str, name: str) -> None:
        """Set the variables of expressions for the addressed tool, prompt, resource or task, where the telemetry of the
        request does not have them already (it is at the worker that relays it)."""
        context = self._call.context
        if context is None or not kind:
            return
        known = (context.dynamic or {}).get("mcp")
        if known is None or isinstance(known, dict):
            context.dynamic = {**(context.dynamic or {}), "mcp": {kind: {"target": target, "name": name}}}

    async def request(self, targets: Sequence[str], params: bytes | None) -> bytes | None:
        """Return changed params, None if they are unchanged; raises McpFailure if a policy server refuses the request.

        `params` is JSON. None means that the request goes to all targets; it cannot be changed then.
        """
        changed = None
        for processor in self._chain.processors:
            if not processor.checks_request(self._method):
                continue
            asked = ProcessorCheck(self._call, targets, self._method, params)

            def readable(decision: Decision, asked: ProcessorCheck = asked) -> None:
                if decision.mutated is not None and asked.body is not None:
                    check_params(self._method, decision.mutated)

            decision = await self._decided(processor, "Request", processor.check_request(asked), readable)
            if decision is None:
                continue
            change(self._fields, decision.sets, decision.removes)
            self._note(decision.metadata)
            if decision.mutated is not None and params is not None:
                changed = params = decision.mutated
        return changed

    async def response(self, targets: Sequence[str], text: bytes) -> bytes:
        """Return the response for the client; errors are unchanged. Raises McpFailure if a policy server refuses it."""
        result = raw_member(text, "result")
        if result is None:
            return text
        before = result

        def readable(decision: Decision) -> None:
            if decision.mutated is not None:
                check_result(self._method, decision.mutated)

        for processor in self._chain.processors:
            if processor.checks_response(self._method):
                asked = ProcessorCheck(self._call, targets, self._method, result)
                decision = await self._decided(processor, "Response", processor.check_response(asked), readable)
                if decision is not None and decision.mutated is not None:
                    result = decision.mutated
        if result is before:
            return text
        return b'{"jsonrpc":"2.0","id":' + (parse(text).raw_id or b"null") + b',"result":' + result + b"}"

    async def _decided(
        self,
        processor: Processor,
        phase: str,
        question: Awaitable[Decision],
        readable: Callable[[Decision], None],
    ) -> Decision | None:
        """Return a policy server's decision, None if it failed and `fail_open` is set; raises McpFailure."""
        chain, name = self._chain, f"check{phase}"
        try:
            decision = await question
            readable(decision)
        except (GrpcFailure, Violation) as error:
            told = _shown(error)
            what = f"protocol violation: {told}" if isinstance(error, Violation) else f"{name} failed: {told}"
            action = "FailOpen" if processor.fail_open else "Reject"
            chain.meter.count(phase, action)
            extra = log_extra(self._call.context, server=processor.name, method=self._method, failure=told)
            logger.warning("policy server failed", extra=extra)
            if processor.fail_open:
                return None
            raise self._failure(INTERNAL_ERROR, f"{VARIABLE} {what}") from None
        rejection = decision.rejection
        action = "Reject" if rejection is not None else "Allow" if decision.mutated is None else "Mask"
        chain.meter.count(phase, action)
        if rejection is not None:
            raise self._failure(rejection.code, rejection.reason, rejection.data)
        return decision

    def _failure(self, code: int, message: str, data: object = None) -> McpFailure:
        self._call.add_log_field("mcp.error.code", code)
        return McpFailure(200, message, code, data)

    def _note(self, metadata: dict[str, Any]) -> None:
        """Store a policy server's metadata for expressions."""
        context = self._call.context
        if metadata and context is not None:
            known = context.dynamic or {}
            context.dynamic = {**known, VARIABLE: {**(known.get(VARIABLE) or {}), **metadata}}


def check_params(method: str, text: bytes) -> None:
    """Raise Violation if a text is not valid as the params of a method."""
    params = _object(text, "params", b'"method":"%s","params":' % method.encode())
    for name, kind in PARAMS.get(method, ()):
        if not isinstance(params.get(name), kind):
            raise Violation(f"the changed params of {method} have no {name}")
    for name in MAPS:
        if name in params and not isinstance(params[name], dict):
            raise Violation(f"{name} of the changed params is not an object")


def check_result(method: str, text: bytes) -> None:
    """Raise Violation if a text is not valid as the result of a method."""
    result = _object(text, "result", b'"result":')
    wanted = RESULTS.get(method)
    if wanted is None or any(name in result for name in UNFINISHED):
        return
    name, kind = wanted
    if not isinstance(result.get(name), kind):
        raise Violation(f"the changed result of {method} has no {name}")


def _object(text: bytes, what: str, head: bytes) -> dict[str, Any]:
    """Return the object that follows `head` in a message; raises Violation if the text is not a valid one."""
    try:
        parse(b'{"jsonrpc":"2.0","id":0,' + head + text + b"}")
        found = json.loads(text)
    except (NotAMessage, ValueError) as error:
        raise Violation(f"the changed {what} cannot be used: {error}") from None
    if not isinstance(found, dict):
        raise Violation(f"the changed {what} is not an object")
    return found


def _shown(error: GrpcFailure | Violation) -> str:
    """Return the failure with the name of its status, as gRPC's own libraries tell it."""
    if isinstance(error, Violation):
        return str(error)
    name = status_name(error.code)
    return f"{name}: {error.text}" if error.text else name
