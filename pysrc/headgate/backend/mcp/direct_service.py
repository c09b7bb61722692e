"""Callbacks of the engine for the plain calls that it forwards by itself (headgate_engine.mcp.direct): sessions,
telemetry, and response headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headgate.backend.mcp.federation.answering import KEEPALIVE_SECONDS
from headgate.backend.mcp.front import STREAM_HEADERS
from headgate.backend.mcp.http_service import edited
from headgate.backend.mcp.request_telemetry import Count
from headgate.backend.mcp.session import Sessions, owner_of
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, agree, error_message
from headgate.dialect.mcp.versions import SESSION_HEADER
from headgate.ir.policies import BackendPolicies
from headgate_engine.context.request import RequestContext
from headgate_engine.link.handler import encode_headers
from headgate_engine.plan.step import AsyncStep, PythonStep, Step
from headgate_engine.sse.encode import encode_event

FIELDS: Final = encode_headers(STREAM_HEADERS)


class DirectService:
    """`target`: the name of a single target, None for several. `count` is called once for each request.
    """

    def __init__(self, sessions: Sessions, target: str | None, policies: BackendPolicies, count: Count) -> None:
        self.sessions = sessions
        self.target = target
        self.count = count
        self._modifier = policies.response_headers
        self.keepalive_s = KEEPALIVE_SECONDS if target is None else 0.0
        self.plain_fields = FIELDS if self._modifier is None else None

    def owner_of(self, context: RequestContext) -> str:
        """Return the owner whose sessions the request may use."""
        return owner_of(context)

    def agree(self, one: bytes | None, other: bytes | None) -> bool:
        """Tell whether two JSON-RPC ids are equal."""
        return agree(one, other)

    def event_fields(self, session_id: str | None) -> list[tuple[bytes, bytes]]:
        """Return the header fields of a response that is an event stream."""
        if self._modifier is None:
            return FIELDS if session_id is None else [*FIELDS, (SESSION_HEADER.encode(), session_id.encode())]
        own = [] if session_id is None else [(SESSION_HEADER, session_id)]
        return encode_headers(edited([*STREAM_HEADERS, *own], self._modifier))

    def lost_answer(self, raw_id: bytes | None, reason: str) -> bytes:
        """Return the event with the error that ends a stream without a response."""
        return encode_event(error_message(raw_id, INTERNAL_ERROR, reason), "message")


def never_waits(steps: Sequence[Any]) -> bool:
    """Tell whether the engine can run the steps of a target by itself."""
    return all(isinstance(step, Step) and not isinstance(step, AsyncStep | PythonStep) for step in steps)
