"""What a call of a target in Python tells the target's meter; the engine's own calls tell it themselves."""

from __future__ import annotations

import time
from typing import Final

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.failure import NoAnswer, TargetFailure, TargetRefusal
from headgate.backend.mcp.targets.exchanges import ENDED, STOPPED
from headgate.dialect.mcp.jsonrpc import RpcKind, RpcMessage
from headgate_engine.mcp.meter import McpTargetMeter
from headgate_engine.mcp.telemetry import error_in

SERVER_ERROR: Final = 500
# How errors of the gateway for servers without a response end.
ENDED_ERROR, STOPPED_ERROR = (f'{reason}"}}}}'.encode() for reason in (ENDED, STOPPED))
NANOSECONDS: Final = 1_000_000_000


class CountedCall:
    """A call from its beginning. `message`: a request; others, and calls without a `meter`, are not counted.

    `call`: the client's request. Where the engine has begun to ask the target, the time counts from there.
    """

    __slots__ = ("_began_ns", "_message", "_meter")

    def __init__(
        self, meter: McpTargetMeter | None, message: RpcMessage | None, call: BackendCall | None = None
    ) -> None:
        counted = message is not None and message.kind is RpcKind.REQUEST
        self._meter = meter if counted else None
        self._message = message
        self._began_ns = 0
        if self._meter is not None:
            begun = None if call is None else call.begun
            self._began_ns = time.monotonic_ns() - (0 if begun is None else int(begun.waited_s * NANOSECONDS))

    def _taken(self) -> McpTargetMeter | None:
        # Only the first outcome counts.
        found, self._meter = self._meter, None
        return found

    @property
    def _took_ns(self) -> int:
        return time.monotonic_ns() - self._began_ns

    def answered(self, text: bytes) -> None:
        """Count the response, or the error of the gateway for a server that has ended; that for a server which the
        gateway has ended counts for nothing.
        """
        if text.endswith((ENDED_ERROR, STOPPED_ERROR)) and error_in(text) is not None:
            if text.endswith(ENDED_ERROR):
                self.failed(ENDED)
            else:
                self.dropped()
            return
        meter = self._taken()
        if meter is not None and self._message is not None:
            meter.answered(self._took_ns, self._message.method, text)

    def refused(self, status: int) -> None:
        """Count an answer with a status other than 2xx. Those of servers that are broken are failures."""
        meter = self._taken()
        if meter is None:
            return
        count = meter.failed if status >= SERVER_ERROR else meter.refused_with
        count(self._took_ns, f"status {status}")

    def unanswered(self, reason: str) -> None:
        """Count an exchange that the server has ended in order, but without a response: an error of one that runs."""
        meter = self._taken()
        if meter is not None:
            meter.refused_with(self._took_ns, reason)

    def dropped(self) -> None:
        """Count nothing: the outcome says nothing of the target."""
        self._meter = None

    def failed(self, reason: str) -> None:
        """Count that there is no response."""
        meter = self._taken()
        if meter is not None:
            meter.failed(self._took_ns, reason)

    def ended(self, failure: TargetFailure) -> None:
        """Count a call that has ended with this failure."""
        if failure.of_gateway:
            self.dropped()
        elif isinstance(failure, TargetRefusal):
            self.refused(failure.status)
        elif isinstance(failure, NoAnswer):
            self.unanswered(str(failure))
        else:
            self.failed(str(failure))
