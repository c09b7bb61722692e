"""POST without a session: for clients of revision 2026-07-28, and for all clients of a stateless backend.

The links to the targets live as long as the request, and only those in use are opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any, Final

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.failure import McpFailure, PassedRefusal, TargetRefusal
from headgate.backend.mcp.federation.answering import Answering, answered, refuse, response_to
from headgate.backend.mcp.federation.discover import discover, failure_of, not_found, relayed
from headgate.backend.mcp.federation.group import LinkGroup
from headgate.backend.mcp.federation.link import Link
from headgate.backend.mcp.federation.listen import Subscription
from headgate.backend.mcp.federation.requests import FederationOptions, Requests, checked, fields_of, nobody
from headgate.backend.mcp.federation.stateless_target import StatelessTarget
from headgate.backend.mcp.federation.suspended_calls import SuspendedCalls, ended
from headgate.backend.mcp.federation.target_answer import Fields
from headgate.backend.mcp.front import STREAM_HEADERS
from headgate.backend.mcp.http_service import HttpService
from headgate.backend.mcp.relay import Relay
from headgate.backend.mcp.relay import relayed as from_neighbour
from headgate.dialect.mcp import merge, modern, naming, versions
from headgate.dialect.mcp.edit import replaced
from headgate.dialect.mcp.elicitation import STATE_MARK, state_of
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcKind, RpcMessage, parse
from headgate.dialect.mcp.methods import (
    CANCELLED,
    DISCOVER,
    INITIALIZE,
    INITIALIZED,
    LISTEN,
    MODERN_REQUESTS,
    TASK_REQUESTS,
)
from headgate.dialect.mcp.naming import UnknownName
from headgate.document.lazy_dataclass import dataclass
from headgate.net.tasks import spawn
from headgate_engine.sse.encode import encode_event

# Notifications that have a meaning only within a session.
SESSION_ONLY: Final = frozenset((INITIALIZED, CANCELLED, "notifications/roots/list_changed"))


@dataclass(frozen=True, slots=True)
class SuspendedCallRouting:
    """Finds suspended calls. `suspended` are those of this worker, `relay` reaches other workers, and `key` names the
    backend.
    """

    suspended: SuspendedCalls
    relay: Relay
    key: str

    async def reached(self, call: BackendCall, message: RpcMessage) -> tuple[bool, bool]:
        """Return two flags for a request: it continues a suspended call, and another worker, which has that call,
        responded.

        Raises McpFailure.
        """
        state = state_of(message)
        worker = None if state is None else self.suspended.worker_of(state)
        if worker is None or worker == self.relay.index:
            return worker is not None, False
        if from_neighbour(call) or not self.relay.knows(worker):
            raise ended()
        try:
            await self.relay.forward(call, worker, self.key)
        except McpFailure:
            # The call ended with its worker.
            raise ended() from None
        return True, True


class StatelessService:
    """The service for requests without a session.

    `targets` in configured order. `info`: the gateway's server info, for several targets. `waiting`: calls whose
    servers wait for the client, also in other workers.
    """

    def __init__(
        self,
        targets: dict[str, StatelessTarget],
        options: FederationOptions,
        info: dict[str, Any],
        waiting: SuspendedCallRouting | None = None,
    ) -> None:
        self.requests = Requests(options)
        self.straight: HttpService | None = None
        self._targets = targets
        self._options = options
        self._info = info
        self._waiting = waiting
        for target in targets.values():
            target.suspended = None if waiting is None else waiting.suspended
        self._subscriptions: set[Subscription] = set()

    def renew(
        self,
        makes: dict[str, Callable[[], Link]],
        options: FederationOptions,
        requests: Requests,
        straight: HttpService | None,
    ) -> None:
        """Apply a newer configuration: factories for the targets, options, and the rules in `requests`.

        `straight`: the service of the only target, to which messages of revision 2026-07-28 are forwarded unchanged;
        None if messages must be inspected.
        """
        for name, make in makes.items():
            self._targets[name].make = make
        self._options = options
        self.requests = requests
        self.straight = straight

    @property
    def unread(self) -> bool:
        """True if messages are forwarded to the only target without checking what they address."""
        return self._options.bare and self.requests.guard is None

    async def post(self, call: BackendCall, message: RpcMessage) -> None:
        """Serve one message. Raises McpFailure."""
        if message.kind is RpcKind.RESPONSE:
            raise McpFailure(400, "the response does not belong to a request of a target")
        version = call.headers.get(versions.HEADER)
        is_modern = versions.is_modern(version)
        ours = False
        if is_modern and self._waiting is not None:
            if STATE_MARK in message.params:
                ours, answered_there = await self._waiting.reached(call, message)
            else:
                answered_there = message.method in TASK_REQUESTS and await self._task_elsewhere(call, message)
            if answered_there:
                return
        if is_modern and self.straight is not None and self.unread and not ours:
            [target] = self._targets.values()
            if not target.legacy:
                if await self.straight.post_modern(call, message, modern.is_legacy_refusal):
                    return
                target.note_legacy()
        links = {name: target.link(is_modern, version) for name, target in self._targets.items()}
        group = LinkGroup(dict(links), self._options.bare)
        try:
            if message.kind is RpcKind.NOTIFICATION:
                await self._notify(call, group, message)
            elif message.method == INITIALIZE:
                await self._initialize(call, group, message)
            elif message.method == LISTEN:
                await self._listen(call, group, message)
            else:
                answering = Answering(call, [])
                work = self._respond(call, group, message, answering, is_modern)
                await answered(call, answering, message, work)
        finally:
            # The client need not wait for it, and its disconnection must not cancel it.
            spawn("mcp teardown", group.stop())

    async def _task_elsewhere(self, call: BackendCall, message: RpcMessage) -> bool:
        """Return True if another worker, whose process has the task, has responded."""
        assert self._waiting is not None
        name, task = next(iter(self._targets)), message.name or ""
        if not self._options.bare:
            with contextlib.suppress(UnknownName):
                name, task = naming.split_task(task)
        target = self._targets.get(name)
        worker = naming.task_worker(task) if target is not None and target.task_id_prefix else None
        if worker is None or from_neighbour(call) or not self._waiting.relay.knows(worker):
            return False
        try:
            await self._waiting.relay.forward(call, worker, self._waiting.key)
        except McpFailure:
            # The process and its tasks ended with the worker.
            raise McpFailure(400, f"Unknown task: {message.name}", INVALID_PARAMS) from None
        return True

    async def _notify(self, call: BackendCall, group: LinkGroup, message: RpcMessage) -> None:
        if message.method not in SESSION_ONLY:
            links = group.links.values()
            calls = [link.notify(message, fields_of(call)) for link in links]
            for failure in await asyncio.gather(*calls, return_exceptions=True):
                if isinstance(failure, BaseException) and not self._options.tolerant:
                    raise McpFailure(503, f"failed to send message: {failure}", INTERNAL_ERROR) from failure
        call.reply(202)

    # -- requests ------------------------------------------------------------------------------------------------------
    async def _respond(
        self, call: BackendCall, group: LinkGroup, message: RpcMessage, answering: Answering, is_modern: bool
    ) -> bytes:
        """Return the response; raises McpFailure."""
        try:
            text = await self._text(call, group, message, answering)
        except McpFailure as failure:
            if isinstance(failure.__cause__, TargetRefusal):
                raise relayed(failure.__cause__) from None
            if is_modern and failure.status == 500:
                # Clients with sessions get 500. Here the request was not processed, and the client may repeat it.
                raise McpFailure(503, failure.message, failure.code, failure.data) from failure
            raise
        if not is_modern:
            return text
        status = _status(text)
        if status != 200 and not answering.begun:
            raise PassedRefusal(status, [("content-type", "application/json")], text, in_answer=True)
        return modern.completed(message.method or "", text)

    async def _text(self, call: BackendCall, group: LinkGroup, message: RpcMessage, answering: Answering) -> bytes:
        fields = fields_of(call)
        if message.method == DISCOVER:
            check = self.requests.check(call, message, fields)
            targets = list(group.links)
            if check is not None:
                await check.request(targets, None)
            text = await self._discovered(group, message, fields, answering)
            return text if check is None else await checked(call, check, message, targets, text)
        if self.unread:
            return await self._ask_only_target(group, message, fields, answering)
        if message.method not in MODERN_REQUESTS and versions.is_modern(call.headers.get(versions.HEADER)):
            raise not_found(message.method or "")
        return await self.requests.respond(call, group, message, answering)

    async def _discovered(
        self, group: LinkGroup, message: RpcMessage, fields: Fields, answering: Answering
    ) -> bytes:
        if group.bare:
            return await self._ask_only_target(group, message, fields, answering)
        return response_to(message, await discover(group, message, fields, self._options.tolerant, self._info))

    @staticmethod
    async def _ask_only_target(group: LinkGroup, message: RpcMessage, fields: Fields, answering: Answering) -> bytes:
        """Return the response of the only target."""
        [target] = group.links
        outcome = await group.ask(target, message, fields, answering.emit)
        if outcome.failure is not None:
            raise failure_of(target, outcome)
        return outcome.text

    async def _initialize(self, call: BackendCall, group: LinkGroup, message: RpcMessage) -> None:
        """Respond with the targets' merged capabilities; the sessions opened for it end with the response."""
        params = modern.stripped_capabilities(message.decoded_params())
        asked = parse(replaced(message.text, ("params", "capabilities"), params.get("capabilities")))
        fields = fields_of(call)
        check = self.requests.check(call, message, fields)
        if check is not None:
            await check.request(list(group.links), None)
        outcomes = await group.ask_all(list(group.links), asked, fields, nobody)
        good = {name: outcome.result for name, outcome in outcomes.items() if outcome.result is not None}
        bad = [(name, outcome) for name, outcome in outcomes.items() if not outcome.good]
        if bad and (not self._options.tolerant or not good):
            refuse(call, message, *bad[0])
            return
        result = next(iter(good.values()))
        if not self._options.bare:
            result = merge.initialize(good, message.protocol_version, self._info)
            # Without an event stream, subscriptions cannot work.
            result["capabilities"].get("resources", {}).pop("subscribe", None)
        text = response_to(message, result)
        if check is not None:
            text = await check.response(list(group.links), text)
        stream = call.stream(200, STREAM_HEADERS)
        await stream.send(encode_event(text, "message"))
        await stream.end()

    async def _listen(self, call: BackendCall, group: LinkGroup, message: RpcMessage) -> None:
        def allowed(kind: str, target: str, name: str) -> bool:
            guard = self.requests.guard
            return guard is None or guard(call, kind, target, name)

        fields = fields_of(call)
        check = self.requests.check(call, message, fields)
        if check is not None:
            await check.request(list(group.links), None)
        found = Subscription(group, message, self._options.tolerant, allowed)
        self._subscriptions.add(found)
        try:
            await found.run(call, fields)
        finally:
            self._subscriptions.discard(found)

    async def revisions(self) -> list[str]:
        """Return the revisions that clients may choose from."""
        if not self._options.bare:
            return list(versions.KNOWN)
        [target] = self._targets.values()
        return await target.revisions()

    def end_subscriptions(self) -> None:
        """End all subscriptions; their clients get a final response."""
        for subscription in self._subscriptions:
            subscription.end()

    async def aclose(self) -> None:
        """End subscriptions and shared processes."""
        self.end_subscriptions()
        if self._waiting is not None:
            await self._waiting.suspended.aclose()
        await asyncio.gather(*(target.aclose() for target in self._targets.values()))


def _status(text: bytes) -> int:
    """Return the HTTP status for a JSON-RPC response; some errors have a status of their own."""
    if b'"error"' not in text:
        return 200
    found = json.loads(text).get("error")
    code = found.get("code") if isinstance(found, dict) else None
    return modern.STATUSES.get(code, 200) if isinstance(code, int) else 200


