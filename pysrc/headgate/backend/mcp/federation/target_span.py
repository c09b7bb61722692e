"""Spans of the calls of targets (https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/)."""

from __future__ import annotations

from contextvars import Token
from typing import Any, Final

from headgate.backend.mcp.federation.target_answer import Fields
from headgate.backend.mcp.request_telemetry import MAX_TEXT, error_in
from headgate.backend.mcp.targets.remote import ClientFields
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse
from headgate_engine.lazy_pattern import lazy_pattern
from headgate_engine.link.client import SPANS
from headgate_engine.link.spanned import NestedCalls, TargetCall
from headgate_engine.mcp.telemetry import KINDS, NAME_FIELDS

TOOL_FAILED: Final = lazy_pattern(rb'"isError"\s*:\s*true')


class TargetSpan:
    """The span of one call of a target; nothing for requests that are not sampled."""

    __slots__ = ("_call", "_token", "_withdrawn")

    def __init__(self, calls: NestedCalls | None) -> None:
        self._call: TargetCall | None = None
        if calls is not None:
            self._call = calls.target_call()
            self._withdrawn = calls.withdrawn
            self._token: Token[Any] = SPANS.set(self._call)

    def carried(self, message: RpcMessage) -> RpcMessage:
        """Return the message with this call, instead of the client's request, as the parent that `_meta` names."""
        if self._call is None or self._withdrawn is None or self._call.traceparent is None:
            return message
        above, own = self._withdrawn.encode(), self._call.traceparent.encode()
        return parse(message.text.replace(above, own)) if above in message.params else message

    def end(self, target: str, message: RpcMessage, failure: str | None, answer: bytes = b"") -> None:
        """End the span. `failure`: why there is no answer, None with one."""
        call, self._call = self._call, None
        if call is None:
            return
        SPANS.reset(self._token)
        method = message.method or ""
        told: list[tuple[str, object]] = [("mcp.method.name", method), ("mcp.target", target)]
        field = NAME_FIELDS.get(KINDS.get(method, ""))
        name = None if field is None or not message.name else message.name[:MAX_TEXT]
        if field is not None and name is not None:
            told.append((field, name))
        if method == "tools/call":
            told.append(("gen_ai.operation.name", "execute_tool"))
        error = error_in(answer)
        if failure is not None:
            told.append(("error.type", "_OTHER"))
        elif error is not None:
            failure = str(error.get("message"))[:MAX_TEXT]
            told += [("error.type", str(error.get("code"))), ("rpc.response.status_code", str(error.get("code")))]
        elif method == "tools/call" and TOOL_FAILED.search(answer):
            failure = "the tool has failed"
            told.append(("error.type", "tool_error"))
        shown = name is not None and field != "mcp.resource.uri"
        call.finish(f"{method} {name}" if shown else method, told, failure)


NO_SPAN: Final = TargetSpan(None)


def begin_span(fields: Fields) -> TargetSpan:
    """Begin the span of a call. The engine's own has one already where it has begun the call."""
    calls = SPANS.get()
    begun = isinstance(fields, ClientFields) and fields.call is not None and fields.call.begun is not None
    return NO_SPAN if begun or not isinstance(calls, NestedCalls) else TargetSpan(calls)
