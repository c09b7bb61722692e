"""`subscriptions/listen` for several targets: one acknowledgement, and then the notifications of all targets.

A target with sessions gets a session for the duration of the subscription: its resources are subscribed to, and its
event stream provides the notifications.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import field
from typing import Any, Final

from headgate.backend.contract import BackendCall, ResponseStream
from headgate.backend.mcp.failure import McpFailure, TargetFailure
from headgate.backend.mcp.federation.answering import KEEPALIVE_SECONDS, response_to
from headgate.backend.mcp.federation.discover import failure_of
from headgate.backend.mcp.federation.group import UPDATED, LinkGroup, Outcome, outcome_of
from headgate.backend.mcp.federation.link import Link
from headgate.backend.mcp.federation.stateless_target import RequestLink
from headgate.backend.mcp.federation.target_answer import Fields, is_response
from headgate.backend.mcp.front import STREAM_HEADERS
from headgate.dialect.mcp import modern, naming
from headgate.dialect.mcp.edit import replaced
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcMessage, error_message, parse
from headgate.dialect.mcp.methods import ACKNOWLEDGED
from headgate.dialect.mcp.naming import UnknownName
from headgate.document.lazy_dataclass import dataclass
from headgate.net.tasks import spawn
from headgate_engine.sse.encode import encode_comment, encode_event

URIS: Final = "resourceSubscriptions"
TASKS: Final = "taskIds"
# Notification method to the member of the filter that admits it.
KINDS: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    UPDATED: URIS,
    "notifications/tasks": TASKS,
}
# Member of the filter to the capability that a server with sessions must declare.
FLAGS: Final = {"toolsListChanged": "tools", "promptsListChanged": "prompts", "resourcesListChanged": "resources"}
MAX_URIS: Final = 1000
QUEUE: Final = 64
Filter = dict[str, Any]
Allowed = Callable[[str, str, str], bool]


@dataclass(slots=True)
class ListenSource:
    """One target of a subscription: requested filter, accepted filter, and messages."""

    target: str
    wanted: Filter
    accepted: Filter = field(default_factory=dict)
    texts: AsyncGenerator[bytes, None] | None = None


def split(group: LinkGroup, wanted: Filter, allowed: Allowed) -> dict[str, Filter]:
    """Return the filter for each target that takes part; raises McpFailure for an unknown or forbidden resource or
    task.

    Each target gets its own resources and tasks, and all other members of the filter. Without other members, targets
    without own resources or tasks are omitted.
    """
    rest = {key: value for key, value in wanted.items() if key not in (URIS, TASKS)}
    owned: dict[str, Filter] = {}
    for key, kind, by in ((URIS, "resource", naming.split_uri), (TASKS, "task", naming.split_task)):
        for text in _texts(wanted, key):
            try:
                target, plain = (next(iter(group.links)), text) if group.bare else by(text)
                if target not in group.links or not allowed(kind, target, plain):
                    raise UnknownName(text)
            except UnknownName:
                raise McpFailure(400, f"Unknown {kind}: {text}", INVALID_PARAMS) from None
            owned.setdefault(target, {}).setdefault(key, []).append(plain)
    everybody = not owned or any(value is not False for value in rest.values())
    return {target: {**rest, **owned.get(target, {})} for target in group.links if everybody or target in owned}


def _texts(wanted: Filter, key: str) -> list[str]:
    found = wanted.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or len(found) > MAX_URIS or not all(isinstance(one, str) for one in found):
        raise McpFailure(400, f"invalid request parameters: {key}", INVALID_PARAMS)
    return list(dict.fromkeys(found))


class Subscription:
    """One `subscriptions/listen` of a client. `allowed(kind, target, name)` is True if the client may access it."""

    def __init__(self, group: LinkGroup, message: RpcMessage, tolerant: bool, allowed: Allowed) -> None:
        self._group = group
        self._message = message
        self._tolerant = tolerant
        self._allowed = allowed
        self._id = json.loads(message.raw_id or b"null")
        self._queue: asyncio.Queue[tuple[ListenSource, bytes | TargetFailure | None]] = asyncio.Queue(QUEUE)
        self._closing = asyncio.Event()

    def end(self) -> None:
        """End the subscription; the client gets a final response."""
        self._closing.set()

    async def run(self, call: BackendCall, fields: Fields) -> None:
        """Serve the client until it disconnects, a target ends, or end() is called.

        Raises McpFailure if the subscription fails before its stream starts.
        """
        wanted = self._message.decoded_params().get("notifications")
        if not isinstance(wanted, dict):
            raise McpFailure(400, "invalid request parameters: there is no notifications", INVALID_PARAMS)
        sources = [ListenSource(target, own) for target, own in split(self._group, wanted, self._allowed).items()]
        try:
            failures = await asyncio.gather(*(self._begin(source, fields) for source in sources))
            failed = [found for found in failures if found is not None]
            if failed and (not self._tolerant or len(failed) == len(sources)):
                raise failed[0]
            stream = call.stream(200, STREAM_HEADERS)
            await stream.send(encode_event(self._acknowledgement(sources, wanted), "message"))
            await self._pump(stream, [source for source in sources if source.texts is not None])
            with contextlib.suppress(ConnectionResetError):
                await stream.end()
        finally:
            for source in sources:
                if source.texts is not None:
                    await source.texts.aclose()

    async def _begin(self, source: ListenSource, fields: Fields) -> McpFailure | None:
        """Wait for a target's acknowledgement; return the failure if there is none."""
        link = self._group.links[source.target]
        request = parse(replaced(self._message.text, ("params", "notifications"), source.wanted))
        texts = subscription_messages(link, request, source.wanted, fields)
        first = b""
        try:
            first = await anext(texts, b"")
            found = json.loads(first or b"{}")
        except TargetFailure as error:
            return failure_of(source.target, Outcome(failure=error))
        except ValueError:
            found = {}
        if not isinstance(found, dict) or found.get("method") != ACKNOWLEDGED:
            await texts.aclose()
            outcome = outcome_of(first) if first else Outcome(failure=TargetFailure("there was no answer"))
            if outcome.result is not None:
                outcome = Outcome(failure=TargetFailure("the subscription was not acknowledged"))
            return failure_of(source.target, outcome)
        params = found.get("params")
        agreed = params.get("notifications") if isinstance(params, dict) else None
        source.accepted = _common(source.wanted, agreed if isinstance(agreed, dict) else {})
        source.texts = texts
        return None

    def _acknowledgement(self, sources: list[ListenSource], wanted: Filter) -> bytes:
        found: Filter = {}
        for key, value in wanted.items():
            having = [source for source in sources if key in source.accepted]
            if not isinstance(value, list):
                if having:
                    found[key] = having[0].accepted[key]
                continue
            shown = {self._shown(key, source.target, text) for source in having for text in source.accepted[key]}
            found[key] = [one for one in dict.fromkeys(value) if one in shown]
        params = {"notifications": found, "_meta": {modern.SUBSCRIPTION: self._id}}
        return _note(ACKNOWLEDGED, params)

    def _shown(self, key: str, target: str, text: str) -> str:
        if self._group.bare:
            return text
        return naming.task_with_target(target, text) if key == TASKS else naming.uri_with_target(target, text)

    async def _pump(self, stream: ResponseStream, sources: list[ListenSource]) -> None:
        tasks = [spawn(f"mcp listen {source.target}", self._read(source)) for source in sources]
        closing = spawn("mcp listen end", self._closing.wait())
        left = len(tasks)
        try:
            while left and not self._closing.is_set():
                getting = spawn("mcp listen next", self._queue.get())
                await asyncio.wait(
                    (getting, closing), timeout=KEEPALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if not getting.done():
                    getting.cancel()
                    if not self._closing.is_set():
                        await stream.send(encode_comment())
                    continue
                source, found = getting.result()
                if isinstance(found, bytes):
                    text = self._outward(source, found)
                    if text is not None:
                        await stream.send(encode_event(text, "message"))
                    continue
                left -= 1
                if found is not None and (not self._tolerant or not left):
                    reason = f"the subscription ended: {source.target}: {found}"
                    text = error_message(self._message.raw_id, INTERNAL_ERROR, reason)
                    await stream.send(encode_event(text, "message"))
                    return
                if not self._tolerant:
                    break
            over = {"resultType": "complete", "_meta": {modern.SUBSCRIPTION: self._id}}
            await stream.send(encode_event(response_to(self._message, over), "message"))
        finally:
            for task in (*tasks, closing):
                task.cancel()
            await asyncio.gather(*tasks, closing, return_exceptions=True)

    async def _read(self, source: ListenSource) -> None:
        """Put a target's messages into the queue, and finally None for a regular end or the failure."""
        assert source.texts is not None
        end: TargetFailure | None = TargetFailure("its stream broke off")
        try:
            async for text in source.texts:
                if is_response(text, self._message):
                    outcome = outcome_of(text)
                    end = None if outcome.good else TargetFailure(str((outcome.error or {}).get("message")))
                    break
                await self._queue.put((source, text))
        except TargetFailure as error:
            end = error
        await self._queue.put((source, end))

    def _outward(self, source: ListenSource, text: bytes) -> bytes | None:
        """Return a notification for the client, None if the filter or a rule excludes it."""
        try:
            found = json.loads(text)
        except ValueError:
            return None
        method, params = found.get("method"), found.get("params")
        key = KINDS.get(method) if isinstance(method, str) else None
        if key is None or not source.accepted.get(key):
            return None
        params = dict(params) if isinstance(params, dict) else {}
        for kind, name, member in (("resource", "uri", URIS), ("task", "taskId", TASKS)):
            plain = params.get(name)
            if isinstance(plain, str) and member == key:
                if not self._allowed(kind, source.target, plain):
                    return None
                params[name] = self._shown(member, source.target, plain)
        meta = params.get("_meta")
        params["_meta"] = {**(meta if isinstance(meta, dict) else {}), modern.SUBSCRIPTION: self._id}
        return _note(str(method), params)


def _common(wanted: Filter, agreed: Filter) -> Filter:
    """Return the members of the filter that were both requested and accepted."""
    found: Filter = {}
    for key, value in wanted.items():
        other = agreed.get(key)
        if isinstance(value, list):
            kept = [one for one in value if isinstance(other, list) and one in other]
            if kept:
                found[key] = kept
        elif value is not False and other is not None and other is not False:
            found[key] = other
    return found


async def subscription_messages(
    link: Link, message: RpcMessage, wanted: Filter, fields: Fields
) -> AsyncGenerator[bytes, None]:
    """Yield a target's messages for a subscription; the first one is its acknowledgement."""
    assert isinstance(link, RequestLink)
    if await link.native() is not None:
        async with contextlib.aclosing(link.request(message, fields)) as texts:
            refused = b""
            async for text in texts:
                if link.opened:
                    # The request revealed that the server has sessions.
                    refused = text
                    break
                yield text
            if not refused:
                return
    await link.session(fields)
    events = await link.events(fields)
    agreed = _offered(wanted, link.capabilities or {})
    for uri in list(agreed.get(URIS, ())):
        if not await _subscribed(link, uri, fields):
            agreed[URIS].remove(uri)
    yield _note(ACKNOWLEDGED, {"notifications": agreed})
    if events is None:
        # The server has no event stream: the subscription stays open without notifications.
        await asyncio.Event().wait()
        return
    try:
        async for text in events:
            yield text
    finally:
        await events.aclose()


def _offered(wanted: Filter, capabilities: dict[str, Any]) -> Filter:
    """Return the part of a filter that a server with sessions supports."""
    found: Filter = {}
    for key, name in FLAGS.items():
        said = capabilities.get(name)
        if wanted.get(key) is True and isinstance(said, dict) and said.get("listChanged") is True:
            found[key] = True
    said = capabilities.get("resources")
    if URIS in wanted and isinstance(said, dict) and said.get("subscribe") is True:
        found[URIS] = list(wanted[URIS])
    return found


async def _subscribed(link: RequestLink, uri: str, fields: Fields) -> bool:
    """Subscribe to a resource of a server with sessions; return True if the server accepted."""
    asked = {"jsonrpc": "2.0", "id": "gw_subscribe", "method": "resources/subscribe", "params": {"uri": uri}}
    last = b""
    async with contextlib.aclosing(link.request(parse(json.dumps(asked).encode()), fields)) as texts:
        async for text in texts:
            last = text
    return outcome_of(last).good if last else False


def _note(method: str, params: dict[str, Any]) -> bytes:
    note = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(note, ensure_ascii=False, separators=(",", ":")).encode()
