"""What all sessions of one policy with its external processor share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headgate.dialect.protobuf import struct_values
from headgate.ir.policy.ext_proc import Pairs, ProcessingOptions
from headgate.ir.remote_service import RemoteService
from headgate.policy.environment import Environment
from headgate.policy.processing.messages import METHOD, Named, described, introduction
from headgate.policy.remote_stream import GrpcStreamService, ServiceStream, StreamUser
from headgate_engine.context.request import RequestContext

# The default of other gRPC clients.
MAX_MESSAGE: Final = 4 * 1024 * 1024


class ExternalProcessor:
    """The service, and what is sent to it. `phase`: that of the expressions on requests."""

    def __init__(
        self, service: RemoteService, env: Environment, *, timeout_ms: int, fail_open: bool, options: ProcessingOptions
    ) -> None:
        self.name = service.name
        self.fail_open = fail_open
        self.options = options
        self.timeout_s = timeout_ms / 1000
        self.most_body = env.max_body
        # Goes into the first message of a stream: how bodies are sent.
        self.introduction = introduction(options)
        self._service = GrpcStreamService(service, env, "ExtProc")
        self._metadata: list[tuple[str, Named]] = []
        self._of_request: Named = []
        self._of_response: Named = []

    def tell(
        self,
        env: Environment,
        phase: str,
        *,
        metadata: Sequence[tuple[str, Pairs]],
        request: Pairs,
        response: Pairs,
    ) -> None:
        """Have expressions evaluated for the processor: its metadata context, and its attributes."""
        self._metadata = [(name, [(key, env.program(text, phase)) for key, text in pairs]) for name, pairs in metadata]
        self._of_request = [(name, env.program(text, phase)) for name, text in request]
        self._of_response = [(name, env.program(text, "response")) for name, text in response]

    def call(self, ctx: RequestContext, user: StreamUser) -> ServiceStream:
        """Return a call that has not been opened."""
        return self._service.call(ctx, user, METHOD, MAX_MESSAGE)

    def describe(self, ctx: RequestContext, *, response: bool) -> bytes:
        """Return attributes and metadata for the first message of a direction, as encoded fields of it."""
        programs = self._of_response if response else self._of_request
        if not programs and not self._metadata:
            return b""
        return described(ctx, programs, self._metadata)

    def keep_metadata(self, ctx: RequestContext, found: Any, variable: str) -> None:
        """Keep what the processor says, for expressions."""
        dynamic: dict[str, Any] = {} if ctx.dynamic is None else ctx.dynamic
        dynamic[variable] = {**dynamic.get(variable, {}), **struct_values(found)}
        ctx.dynamic = dynamic

    def picked(self, session: Any) -> bool:
        """The head of the request is as the processor wants it. Return whether the request may go on."""
        return True

