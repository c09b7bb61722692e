"""Calls of a policy to its service.

The policies of the service run on each as on a request of its own, made on behalf of the client.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headgate.ir.remote_service import RemoteService
from headgate.net.authority import own_authority
from headgate.policy.environment import Environment
from headgate_engine.context.request import Reply, RequestContext, derived_context
from headgate_engine.link.client import CallError, ClientResponse
from headgate_engine.link.consult import GrpcQuestion
from headgate_engine.link.grpc_call import GrpcFailure
from headgate_engine.plan.step import settle

if TYPE_CHECKING:
    from headgate_engine.link.consult import AskingPolicy

UNAVAILABLE = 14
PERMISSION_DENIED = 7
# By their numbers (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md).
STATUSES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
THE_ONLY_ONE = (0,)
# Characters of a refusal that are logged.
MAX_TOLD = 256


def status_name(code: int) -> str:
    """Return the name of a status of gRPC."""
    return STATUSES[code] if 0 <= code < len(STATUSES) else f"status {code}"


def told(reply: Reply) -> str:
    """Return why a policy refuses a call, for logs."""
    text = reply.body.decode("utf-8", "replace")[:MAX_TOLD]
    return text if text and text.isprintable() else f"status {reply.status}"


class RemoteCaller:
    """Calls to one service. `subtype`: label of its calls in metrics."""

    def __init__(self, service: RemoteService, env: Environment, subtype: str) -> None:
        self.name = service.name
        self._weights = [float(share) for _, share in service.places]
        assert env.steps_of_call is not None
        host = service.places[0][0].host if service.places else ""
        self._steps = env.steps_of_call(service.policies, host or "", env)
        self._authorities = [own_authority(place) for place, _ in service.places]
        self._places = [place for place, _ in service.places]
        self._env = env
        self.subtype = subtype

    def _order(self) -> Iterator[int]:
        """Return the endpoints in a random order, weighted by their shares."""
        return iter(THE_ONLY_ONE) if len(self._places) == 1 else self._drawn()

    def _drawn(self) -> Iterator[int]:
        left = list(range(len(self._places)))
        while left:
            weights = [self._weights[index] for index in left]
            [index] = random.choices(left, weights if any(weights) else None)
            left.remove(index)
            yield index

    async def _metadata(
        self,
        origin: RequestContext | None,
        path: str,
        index: int,
        message: bytes,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Sequence[tuple[str, str]]:
        """Return `headers` and what the policies of the service add. Raises GrpcFailure where one refuses the call."""
        context = derived_context(origin, "POST", path, self._authorities[index], headers, message)
        for step in self._steps:
            if await settle(step, context) is not None:
                raise GrpcFailure(PERMISSION_DENIED, "a policy of the service refuses the call", True)
        return [(name.lower(), value) for name, value in context.request.items()]


class GrpcPolicyService(RemoteCaller):
    """Unary gRPC calls to a service."""

    def __init__(self, service: RemoteService, env: Environment, subtype: str) -> None:
        super().__init__(service, env, subtype)
        assert env.grpc is not None
        self._callers = [env.grpc(place, subtype) for place in self._places]

    def question(self, path: str, policy: AskingPolicy, *, timeout_s: float, limit: int) -> GrpcQuestion | None:
        """Return what the engine asks by itself; None where policies of the service, which may wait, come first.

        `limit`: bytes of an answer.
        """
        if self._steps or not self._callers:
            return None
        return GrpcQuestion(path, tuple(self._callers), self._order, policy, timeout_s=timeout_s, limit=limit)

    async def unary(
        self,
        origin: RequestContext | None,
        path: str,
        message: bytes,
        *,
        timeout_s: float,
        limit: int,
        headers: Sequence[tuple[str, str]] = (),
    ) -> bytes:
        """Return the message of the answer. Raises GrpcFailure.

        An endpoint that cannot be reached is skipped. `timeout_s` is that of each endpoint. `headers`: more metadata,
        names in lower case. `origin`: the request on whose behalf it is asked; None: nobody's.
        """
        failure = GrpcFailure(UNAVAILABLE, "there is no endpoint", True)
        for index in self._order():
            sent = await self._metadata(origin, path, index, message, headers) if self._steps else headers
            try:
                return await self._callers[index].unary(path, message, sent, timeout_s, limit)
            except GrpcFailure as error:
                if not error.unsent:
                    raise
                failure = error
        raise failure


class HttpPolicyService(RemoteCaller):
    """HTTP calls to a service."""

    def __init__(self, service: RemoteService, env: Environment, subtype: str) -> None:
        super().__init__(service, env, subtype)
        self._clients = [env.client(place, subtype=subtype) for place in self._places]

    async def request(
        self,
        origin: RequestContext | None,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        authority: str | None = None,
    ) -> ClientResponse:
        """Return the answer once its head has come. `authority`: another one than the service's.

        Raises CallError; ValueError for a request that cannot be sent.
        """
        for index in self._order():
            if not self._steps:
                return await self._clients[index].request(method, target, headers, body, authority)
            context = derived_context(origin, method, target, authority or self._authorities[index], headers, body)
            for step in self._steps:
                reply = await settle(step, context)
                if reply is not None:
                    raise CallError(f"a policy of the service refuses the call: {told(reply)}")
            return await self._clients[index].request(
                context.method, context.target, context.request.items(), context.request_body, context.authority
            )
        raise CallError("there is no endpoint")
