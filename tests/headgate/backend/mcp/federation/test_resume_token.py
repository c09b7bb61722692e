"""What ids of bridged sessions say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from headgate.backend.mcp.federation.group import LinkGroup
from headgate.backend.mcp.federation.modern_link import EitherLink, ModernLink
from headgate.backend.mcp.federation.resume_token import MAX_BYTES, links_of, resume_token_of
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse

CAPABILITIES = {"sampling": {}, "tasks": {}}


class Remote:
    """A server: with sessions, or without."""

    capabilities: dict[str, Any] | None = None
    timeout_s: float | None = None
    direct = None
    meter = None

    def __init__(self, name: str, modern: bool, state: str | None, pinned: bool = False) -> None:
        self.name, self.modern, self.state, self.pinned = name, modern, state, pinned
        self.seen: list[Any] = []

    def reaches(self, _method: str | None) -> bool:
        return True

    async def request(self, message: RpcMessage, fields: Any) -> AsyncGenerator[bytes, None]:
        self.seen.append(json.loads(message.text).get("params"))
        found: dict[str, Any] = {"jsonrpc": "2.0", "id": json.loads(message.raw_id or b"0")}
        if message.method == "initialize" and self.modern:
            yield json.dumps({**found, "error": {"code": -32601, "message": "no"}}).encode()
        else:
            self.state = None if self.modern else "their session"
            yield json.dumps({**found, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}).encode()

    async def ask(self, message: RpcMessage, fields: Any, on_message: Any) -> RpcMessage:
        raise AssertionError

    async def notify(self, message: RpcMessage, fields: Any) -> None: ...

    async def events(self, fields: Any) -> AsyncGenerator[bytes, None] | None:
        return None

    async def close(self) -> None: ...


def opened(capabilities: dict[str, Any], **remotes: Remote) -> LinkGroup:
    """The links of a session that a client has begun."""
    group = LinkGroup({name: EitherLink(lambda _state, one=one: one, None) for name, one in remotes.items()}, False)  # type: ignore[misc]
    params = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"}}
    start = parse(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode())

    async def nobody(_text: bytes) -> None: ...

    asyncio.run(group.ask_all(list(group.links), start, [], nobody))
    return group


def test_a_session_comes_back_as_it_was_begun() -> None:
    group = opened(CAPABILITIES, new=Remote("new", True, None), old=Remote("old", False, None))
    resume_token = resume_token_of(group, "k", "ada")
    assert resume_token
    made: dict[str, str | None] = {}
    remotes: dict[str, Remote] = {}

    def factory(name: str) -> Any:
        def make(state: str | None) -> EitherLink:
            made[name] = state
            remotes[name] = Remote(name, name == "new", state)
            return EitherLink(lambda _state: remotes[name], state)

        return make

    factories = {name: factory(name) for name in ("new", "old", "later")}
    assert links_of(resume_token, "k", "bob", factories) is None
    assert links_of(resume_token, "other", "ada", factories) is None
    assert links_of(resume_token, "k", "ada", {"new": factories["new"]}) is None, "a target is gone"
    assert links_of(b"", "k", "ada", factories) is None
    dated = resume_token_of(group, "k", "ada", 1000)
    assert links_of(dated, "k", "ada", factories, 1000) is not None
    assert links_of(dated, "k", "ada", factories, 1000.5) is None, "it is too old"
    assert links_of(resume_token, "k", "ada", factories, 1e12) is not None, "of a version that noted no time"
    links = links_of(resume_token, "k", "ada", factories)
    assert links is not None
    assert list(links) == ["new", "old"]
    assert made == {"new": None, "old": "their session"}
    assert resume_token_of(LinkGroup(links, False), "k", "ada") == resume_token
    call = parse(b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}')

    async def use() -> list[bytes]:
        return [text async for text in links["new"].request(call, [])]

    assert asyncio.run(use())
    meta = remotes["new"].seen[-1]["_meta"]
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {"sampling": {}}
    assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "c"


def test_what_ends_with_its_worker_has_no_memo() -> None:
    process = Remote("p", False, None, pinned=True)
    assert resume_token_of(opened({}, new=Remote("new", True, None), p=process), "k", "") == b""
    # Also where the process knows no sessions: what it keeps in mind is its own.
    modern = opened({}, p=Remote("p", True, None, pinned=True))
    link = modern.links["p"]
    assert isinstance(link, EitherLink)
    assert isinstance(link._link, ModernLink)
    assert resume_token_of(modern, "k", "") == b""


def test_a_client_that_says_too_much_of_itself_is_not_remembered() -> None:
    noise = {str(number): hash((number, "x")) for number in range(MAX_BYTES)}
    assert resume_token_of(opened({"experimental": noise}, new=Remote("new", True, None)), "k", "") == b""
