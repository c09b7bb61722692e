"""Calls to a remote target. Its policies run on each call as on a separate request on behalf of the client."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence

from headgate.backend.contract import BackendCall, BegunCall, UpstreamClient, UpstreamResponse
from headgate.backend.mcp.failure import Headers, OwnRefusal
from headgate.backend.mcp.targets.decoded import plain
from headgate.ir.policies import NO_BACKEND_POLICIES, BackendPolicies
from headgate_engine.context.request import Reply, RequestContext, derived_context
from headgate_engine.plan.step import Step, settle


class ClientFields(list[tuple[str, str]]):
    """The fields of a client's request, with the context that tells who asks: credentials and expressions read it.
    `call`: the request, where the engine may have begun to ask the target.

    Whoever changes fields keeps the origin: `fields.changed(...)`.
    """

    def __init__(
        self,
        fields: Iterable[tuple[str, str]] = (),
        origin: RequestContext | None = None,
        call: BackendCall | None = None,
    ) -> None:
        super().__init__(fields)
        self.origin = origin
        self.call = call

    def changed(self, fields: Iterable[tuple[str, str]]) -> ClientFields:
        """Return other fields of the same origin."""
        return ClientFields(fields, self.origin)

    def kept(self) -> ClientFields:
        """Return who asks without the fields, for calls after the client's request is over."""
        if self.origin is None:
            return ClientFields()
        origin = self.origin
        return ClientFields((), derived_context(origin, origin.method, origin.target, origin.authority, ()))


def lasting(fields: Sequence[tuple[str, str]]) -> ClientFields:
    """Return fields that are good after the client's request is over."""
    return ClientFields(fields, ClientFields((), origin_of(fields)).kept().origin)


def origin_of(fields: Sequence[tuple[str, str]]) -> RequestContext | None:
    """Return the context that fields come from, None when they are the gateway's own."""
    return fields.origin if isinstance(fields, ClientFields) else None


class Remote:
    """How a target is reached: through `client`, with its `policies`. `steps` are those of them that are compiled;
    `authority` is what `host` says before they run.
    """

    def __init__(
        self,
        client: UpstreamClient,
        authority: str = "",
        policies: BackendPolicies = NO_BACKEND_POLICIES,
        steps: Sequence[Step] = (),
    ) -> None:
        self._client = client
        self.authority = authority
        self.policies = policies
        self._steps = tuple(steps)

    def renew(self, newer: Remote) -> None:
        """Go on as `newer`: sessions outlast a change of credentials, certificates and other policies."""
        self._client, self.authority = newer._client, newer.authority
        self.policies, self._steps = newer.policies, newer._steps

    @property
    def compiled(self) -> tuple[UpstreamClient, tuple[Step, ...]]:
        """What the engine needs to make calls by itself."""
        return self._client, self._steps

    @property
    def timeout_s(self) -> float | None:
        """How long a call may take until its head has come."""
        timeout_ms = self.policies.request_timeout_ms
        return None if timeout_ms is None else timeout_ms / 1000

    def asked(
        self, fields: Sequence[tuple[str, str]], method: str, path: str, headers: Headers, body: bytes | None
    ) -> tuple[float | None, Awaitable[UpstreamResponse]]:
        """Return how long the head of the answer may take, and what gives that answer: to a call that the engine has
        begun for the request of these fields, or to a new one.
        """
        call = fields.call if isinstance(fields, ClientFields) else None
        if call is None or call.begun is None:
            return self.timeout_s, self.request(method, path, headers, body, origin_of(fields))
        begun, call.begun = call.begun, None
        return begun.remaining_s, taken_over_later(begun)

    async def request(
        self,
        method: str,
        path: str,
        headers: list[tuple[str, str]],
        body: bytes | None,
        origin: RequestContext | None = None,
    ) -> UpstreamResponse:
        """Return the answer once its head has come; OSError when there is none, Refused when a policy answers."""
        if not self._steps:
            return plain(await self._client.request(method, path, headers, body))
        context = derived_context(origin, method, path, self.authority, headers, body)
        for step in self._steps:
            reply = await settle(step, context)
            if reply is not None:
                raise refusal(reply)
        items = context.request.items()
        return plain(
            await self._client.request(
                context.method, context.target, items, context.request_body, context.authority
            )
        )


def taken_over(begun: BegunCall) -> UpstreamResponse:
    """Return the answer to a call that the engine has begun; raises as `Remote.request` and TimeoutError."""
    if begun.refusal is not None:
        raise refusal(begun.refusal)
    return plain(begun.answer())


async def taken_over_later(begun: BegunCall) -> UpstreamResponse:
    """Return the answer to a call that the engine has begun, once its head has come; raises as `taken_over`. The call
    ends when nobody waits for it any more.
    """
    try:
        if begun.refusal is None:
            await begun.wait_for_head()
        return taken_over(begun)
    except BaseException:
        begun.give_up()
        raise


def refusal(reply: Reply) -> OwnRefusal:
    """Return the failure that has a policy's answer."""
    fields: Headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in reply.headers]
    return OwnRefusal(reply.status, fields, reply.body)
