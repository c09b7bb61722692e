"""Requests of a client to several servers: whose each is, what it is called there, and what all of them say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.failure import (
    McpFailure,
    PassedRefusal,
    TargetFailure,
    TargetRefusal,
    error_of,
    session_not_found,
)
from headgate.backend.mcp.federation.answering import Answering, response_to
from headgate.backend.mcp.federation.group import LinkGroup, List, Outcome, outcome_of
from headgate.backend.mcp.federation.target_answer import Fields
from headgate.backend.mcp.request_telemetry import addressed
from headgate.backend.mcp.targets.remote import ClientFields
from headgate.dialect.mcp import merge, naming
from headgate.dialect.mcp.edit import replaced
from headgate.dialect.mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RpcMessage,
    error_message,
    parse,
)
from headgate.dialect.mcp.methods import INITIALIZE
from headgate.dialect.mcp.modern import LOG_LEVEL, REQUEST_META
from headgate.dialect.mcp.naming import UnknownName
from headgate.document.lazy_dataclass import dataclass
from headgate_engine.peek.items import Item, list_of

if TYPE_CHECKING:  # protobuf and gRPC: 8 MB
    from headgate.backend.mcp.guardrails.chain import Check, Guardrails

LISTS: Final = {
    "tools/list": List(b"tools", b"name", "tools", "tool"),
    "prompts/list": List(b"prompts", b"name", "prompts", "prompt"),
    "resources/list": List(b"resources", b"uri", "resources", "resource"),
    "resources/templates/list": List(b"resourceTemplates", b"uriTemplate", "resources", "resource"),
}
# Part of the members that tell of a tool's user interface (MCP Apps), and what could spell it otherwise.
UI_MARK, ESCAPE = b"esourceUri", b"\\"
EMPTY: Final = {"ping": None, "logging/setLevel": "logging"}
NAMED: Final = {"tools/call": ("tool", "tools/list"), "prompts/get": ("prompt", "prompts/list")}
BY_URI: Final = frozenset(("resources/read", "resources/subscribe", "resources/unsubscribe"))
BY_TASK: Final = frozenset(("tasks/get", "tasks/cancel", "tasks/result", "tasks/update"))
COMPLETE: Final = "completion/complete"
# How servers, and the gateway, begin the error about a task that they do not know.
UNKNOWN_TASK: Final = "Unknown task: "
# What a method is about, for rules.
KINDS: Final = {
    **{method: kind for method, (kind, _) in NAMED.items()},
    **dict.fromkeys(BY_URI, "resource"),
    **dict.fromkeys(BY_TASK, "task"),
}
Guard = Callable[[BackendCall, str, str, str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationOptions:
    """`prefixed`: names carry their target; without, a name belongs to the one target that has it. `bare`: there is one
    target, whose names and URIs are the client's. `tolerant`: targets that fail are passed over.
    """

    prefixed: bool
    bare: bool = False
    tolerant: bool = False


class Requests:
    """`guard(call, kind, target, name)` tells what there is for whom; kinds: tool, prompt, resource, task.

    `guardrails`: the policy servers that are asked about requests and results.
    """

    def __init__(self, options: FederationOptions) -> None:
        self._prefixed, self._bare, self.tolerant = options.prefixed, options.bare, options.tolerant
        self.guard: Guard | None = None
        self.guardrails: Guardrails | None = None

    def check(self, call: BackendCall, message: RpcMessage, fields: Fields) -> Check | None:
        """Return what asks policy servers about one request, None where there are none."""
        return None if self.guardrails is None else self.guardrails.check(call, message, fields)

    async def respond(self, call: BackendCall, group: LinkGroup, message: RpcMessage, answering: Answering) -> bytes:
        """Return the response to a request. Raises McpFailure."""
        method = message.method or ""
        fields = fields_of(call)
        check = self.check(call, message, fields)
        if method in LISTS or method in EMPTY:
            asked = LISTS[method].capability if method in LISTS else EMPTY[method]
            targets = [name for name, link in group.links.items() if has(link.capabilities, asked)]
            if check is not None:
                await check.request(targets, None)
            if method in LISTS:
                text = await self._list(call, group, message, fields, answering)
            else:
                text = await self._empty(group, message, fields, answering)
            return text if check is None else await checked(call, check, message, targets, text)
        if method == INITIALIZE:
            raise McpFailure(400, "the session is initialized already", INVALID_PARAMS)
        kind = KINDS.get(method) or completed_kind(message)
        try:
            kind, target, plain, path = await self._addressed(group, message, fields)
            addressed(call, target, plain, kind)
            inner = message if self._bare else renamed(message, path, plain)
            if check is not None:
                check.about(kind, target, plain)
                params = await check.request([target], inner.params or None)
                inner = inner if params is None else parse(inner.with_params(params))
            if not self._allowed(call, kind, target, plain):
                raise UnknownName(message.name or plain)
        except UnknownName as error:
            data = {"uri": message.uri} if method in BY_URI and message.uri is not None else None
            raise McpFailure(400, f"Unknown {kind or 'name'}: {error}", INVALID_PARAMS, data) from None
        outcome = await group.ask(target, inner, fields, answering.emit, answering.close_stream)
        if outcome.failure is not None:
            if isinstance(outcome.failure, TargetRefusal) and not self._bare:
                outcome.failure.body = inbound_error(method, target, outcome.failure.body)
            raise self._failed(target, outcome.failure)
        if check is not None and outcome.good:
            outcome = outcome_of(await checked(call, check, message, [target], outcome.text))
        return outcome.text if self._bare else inbound_result(method, target, outcome)

    def _allowed(self, call: BackendCall, kind: str, target: str, name: str) -> bool:
        return self.guard is None or self.guard(call, kind, target, name)

    async def _addressed(
        self, group: LinkGroup, message: RpcMessage, fields: Fields
    ) -> tuple[str, str, str, tuple[str, ...]]:
        """Return what kind of thing a request is about, whose it is, what it is called there, and the member of the
        message that says so; UnknownName.
        """
        method, name = message.method or "", message.name or ""
        if method in NAMED:
            kind, listing = NAMED[method]
            return kind, *await self._owner(group, listing, name, message, fields), ("params", "name")
        if method in BY_URI:
            return "resource", *self._by(naming.split_uri, group, name), ("params", "uri")
        if method in BY_TASK:
            return "task", *self._by(naming.split_task, group, name), ("params", "taskId")
        if method == COMPLETE:
            ref = message.decoded_params().get("ref")
            ref = ref if isinstance(ref, dict) else {}
            if isinstance(ref.get("name"), str):
                owner = await self._owner(group, "prompts/list", ref["name"], message, fields)
                return "prompt", *owner, ("params", "ref", "name")
            if isinstance(ref.get("uri"), str):
                return "resource", *self._by(naming.split_uri, group, ref["uri"]), ("params", "ref", "uri")
            raise McpFailure(400, "invalid request parameters: ref has neither name nor uri", INVALID_PARAMS)
        # Not 404, which tells clients of revisions with sessions that theirs is over.
        raise McpFailure(400, f"unsupported method: {method[:80]}", METHOD_NOT_FOUND)

    def _by(self, split: Callable[[str], tuple[str, str]], group: LinkGroup, name: str) -> tuple[str, str]:
        """Return the target of a URI or task and its name there; UnknownName."""
        if self._bare:
            return next(iter(group.links)), name
        target, plain = split(name)
        if target not in group.links:
            raise UnknownName(name)
        return target, plain

    async def _owner(
        self, group: LinkGroup, listing: str, name: str, message: RpcMessage, fields: Fields
    ) -> tuple[str, str]:
        """Return the target of a tool or prompt and its name there; UnknownName. `message` is what asks for it."""
        if self._bare or self._prefixed:
            return self._by(naming.split_name, group, name)
        owner = group.owners.get((listing, name))
        if owner is not None:
            return owner, name
        owners = merge.owners(await self._lists(group, probe(listing, message), fields, nobody))
        group.owners.clear()
        group.owners.update({(listing, one): found for one, found in owners.items() if found is not None})
        owner = owners.get(name)
        if name in owners and owner is None:
            raise McpFailure(400, f"{name} is served by multiple targets", INVALID_PARAMS)
        if owner is None:
            raise UnknownName(name)
        return owner, name

    async def _lists(
        self, group: LinkGroup, message: RpcMessage, fields: Fields, emit: Callable[[bytes], Awaitable[None]]
    ) -> dict[str, list[Item]]:
        """Return the items of every target that has such a list."""
        kind = LISTS[message.method or ""]
        asked = [name for name, link in group.links.items() if has(link.capabilities, kind.capability)]
        lists = await asyncio.gather(*(group.listed(name, message, kind, fields, emit) for name in asked))
        found: dict[str, list[Item]] = {}
        failures: list[tuple[str, Outcome]] = []
        for name, listed in zip(asked, lists, strict=True):
            if listed.failed is None:
                found[name] = listed.items
            elif not listed.failed.unknown_method:
                failures.append((name, listed.failed))
        if failures and (not self.tolerant or not found):
            raise self._broken(*failures[0])
        return found

    async def _list(
        self, call: BackendCall, group: LinkGroup, message: RpcMessage, fields: Fields, answering: Answering
    ) -> bytes:
        if self._bare:
            return await self._page(call, group, message, fields, answering)
        kind = LISTS[message.method or ""]
        lists = await self._lists(group, without_cursor(message), fields, answering.emit)
        owners: dict[str, str | None] | None = None
        if kind.key == b"name" and not self._prefixed and len(group.links) > 1:
            owners = merge.owners(lists)
        items: list[bytes] = []
        for target, found in lists.items():
            mine = found if owners is None else [item for item in found if owners.get(item.name or "") == target]
            items += self._items(call, kind, target, mine)
        return b'{"jsonrpc":"2.0","id":%b,"result":{"%b":[%b]}}' % (
            message.raw_id or b"null",
            kind.member,
            b",".join(items),
        )

    def _items(self, call: BackendCall, kind: List, target: str, found: list[Item]) -> list[bytes]:
        """Return those items of one target that the client may see, by its names for them."""
        guard = self.guard
        prefix = f"{target}_" if kind.key == b"name" and self._prefixed and not self._bare else None
        same = prefix is None and (self._bare or kind.key == b"name")
        items: list[bytes] = []
        for item in found:
            name = item.name
            if name is None or (guard is not None and not guard(call, kind.kind, target, name)):
                continue
            shown = prefix + name if prefix is not None else name if same else naming.uri_with_target(target, name)
            if item.odd or (item.has_meta and (UI_MARK in item.raw or ESCAPE in item.raw)):
                whole = self._apps(call, target, {**item.decoded(), kind.key.decode(): shown})
                items.append(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode())
            else:
                items.append(item.raw if same else item.renamed(shown))
        return items

    async def _page(
        self, call: BackendCall, group: LinkGroup, message: RpcMessage, fields: Fields, answering: Answering
    ) -> bytes:
        """Return one target's own page without what the client may not see; nothing else of it changes."""
        kind = LISTS[message.method or ""]
        [target] = group.links
        outcome = await group.ask(target, message, fields, answering.emit)
        if outcome.failure is not None:
            raise self._failed(target, outcome.failure)
        if outcome.response is None or not outcome.good:
            return outcome.text
        (start, stop), found = list_of(outcome.response, kind.member, kind.key)
        if not stop:
            return outcome.text
        items = b",".join(self._items(call, kind, target, found))
        text = b"%b[%b]%b" % (outcome.text[:start], items, outcome.text[stop:])
        return replaced(text, ("result", "cacheScope"), "private") if b"cacheScope" in text else text

    def _apps(self, call: BackendCall, target: str, item: dict[str, Any]) -> dict[str, Any]:
        """Return a tool with the URI of its user interface as the client may use it (MCP Apps)."""
        meta = item.get("_meta")
        if not isinstance(meta, dict):
            return item
        meta = self._ui(call, target, dict(meta), "ui/resourceUri")
        if isinstance(meta.get("ui"), dict):
            meta["ui"] = self._ui(call, target, dict(meta["ui"]), "resourceUri")
            if not meta["ui"]:
                del meta["ui"]
        if not meta:
            return {key: value for key, value in item.items() if key != "_meta"}
        return {**item, "_meta": meta}

    def _ui(self, call: BackendCall, target: str, holder: dict[str, Any], key: str) -> dict[str, Any]:
        uri = holder.get(key)
        if isinstance(uri, str) and naming.UI.match(uri):
            if self._allowed(call, "resource", target, uri):
                holder[key] = uri if self._bare else naming.uri_with_target(target, uri)
            else:
                del holder[key]
        return holder

    async def _empty(self, group: LinkGroup, message: RpcMessage, fields: Fields, answering: Answering) -> bytes:
        capability = EMPTY[message.method or ""]
        asked = [name for name, link in group.links.items() if has(link.capabilities, capability)]
        outcomes = await group.ask_all(asked, message, fields, answering.emit)
        failures = [(name, one) for name, one in outcomes.items() if not one.good and not one.unknown_method]
        if failures and (not self.tolerant or len(failures) == len(asked)):
            raise self._broken(*failures[0])
        return response_to(message, {})

    def _broken(self, target: str, outcome: Outcome) -> McpFailure:
        if outcome.error is not None:
            return error_of(target, outcome.error)
        assert outcome.failure is not None
        return self._failed(target, outcome.failure)

    def _failed(self, target: str, failure: TargetFailure) -> McpFailure:
        if isinstance(failure, TargetRefusal) and failure.forgotten:
            # The client knows how the session was begun.
            found = session_not_found()
        elif isinstance(failure, TargetRefusal) and self._bare and failure.status != 404:
            # As without rules and guardrails, where it passes as it is: a 401 leads the client to a token.
            found = PassedRefusal(failure.status, failure.fields, failure.body)
        elif isinstance(failure, TargetRefusal) and failure.error is not None:
            # Of one among several: its status would be taken for the gateway's own, and a 401 lead to a token that
            # never reaches the target.
            found = error_of(target, failure.error)
        else:
            found = McpFailure(500, f"failed to send message: {target}: {failure}", INTERNAL_ERROR)
        found.__cause__ = failure
        return found


async def checked(call: BackendCall, check: Check, message: RpcMessage, targets: list[str], text: bytes) -> bytes:
    """Return a response as policy servers leave it; a refusal is an error in its place."""
    try:
        return await check.response(targets, text)
    except McpFailure as failure:
        call.add_log_field("mcp.error.message", failure.message)
        code = INTERNAL_ERROR if failure.code is None else failure.code
        return error_message(message.raw_id, code, failure.message, failure.data)


async def nobody(_text: bytes) -> None:
    """Let a message go that the client did not ask for."""


def fields_of(call: BackendCall) -> Fields:
    """Return the client's fields; links take out what is not for targets."""
    return ClientFields(call.headers.items(), call.context, call)


def has(capabilities: dict[str, Any] | None, name: str | None) -> bool:
    """Tell whether a target can be asked: it said so, or nothing is known of it."""
    return name is None or capabilities is None or name in capabilities


def completed_kind(message: RpcMessage) -> str:
    """Return what a completion is for, "" for other requests."""
    if message.method != COMPLETE:
        return ""
    ref = message.decoded_params().get("ref")
    return "prompt" if isinstance(ref, dict) and isinstance(ref.get("name"), str) else "resource"


def probe(method: str, message: RpcMessage) -> RpcMessage:
    """Return a request of the gateway's own, in the revision of a client's."""
    asked: dict[str, Any] = {"jsonrpc": "2.0", "id": "gw_list", "method": method}
    if message.meta_version is not None:
        meta = message.decoded_params().get("_meta", {})
        asked["params"] = {"_meta": {key: meta[key] for key in REQUEST_META if key in meta and key != LOG_LEVEL}}
    return parse(json.dumps(asked).encode())


def without_cursor(message: RpcMessage) -> RpcMessage:
    """Return a list request from its beginning: all pages of all targets are one page here. Raises McpFailure."""
    params = message.decoded_params()
    # Some clients say that they have none.
    if params.get("cursor") is not None:
        raise McpFailure(400, "invalid request parameters: no such cursor", INVALID_PARAMS)
    return message


def inbound_error(method: str, target: str, text: bytes) -> bytes:
    """Return a target's error as the client gets it: the URI or the task that it does not know leads back."""
    if method not in BY_URI and method not in BY_TASK:
        return text
    try:
        error = json.loads(text)["error"]
        if method in BY_TASK:
            start, mark, task = str(error["message"]).partition(UNKNOWN_TASK)
            shown = f"{UNKNOWN_TASK}{naming.task_with_target(target, task)}"
            return text if start or not mark else replaced(text, ("error", "message"), shown)
        uri = error["data"]["uri"]
    except (ValueError, KeyError, TypeError):
        return text
    shown = naming.uri_with_target(target, uri) if isinstance(uri, str) else uri
    return replaced(text, ("error", "data", "uri"), shown)


def renamed(message: RpcMessage, path: tuple[str, ...], plain: str) -> RpcMessage:
    """Return a request about something that has another name at its target."""
    # Only a completion, and `tasks/result`, say it where `RpcMessage.name` does not look.
    own = message.name is not None and len(path) == 2
    return parse(message.with_name(plain) if own else replaced(message.text, path, plain))


def inbound_result(method: str, target: str, outcome: Outcome) -> bytes:
    """Return a target's response as the client gets it: URIs of what was read, ids of tasks lead back."""
    response = outcome.response
    if response is None or not outcome.good:
        return inbound_error(method, target, outcome.text)
    if method == "resources/read":
        return _read_result(target, outcome)
    task = response.result_task
    return outcome.text if task is None else response.with_task(naming.task_with_target(target, task))


def _read_result(target: str, outcome: Outcome) -> bytes:
    result = outcome.result or {}
    if isinstance(result.get("contents"), list):
        contents = [
            {**one, "uri": naming.uri_with_target(target, one["uri"])}
            if isinstance(one, dict) and isinstance(one.get("uri"), str)
            else one
            for one in result["contents"]
        ]
        return replaced(outcome.text, ("result", "contents"), contents)
    return outcome.text
