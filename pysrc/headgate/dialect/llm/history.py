"""What other vendors said earlier in a conversation, made fit for a vendor that speaks the client's format.

A conversation may change vendors at every turn, by failover or by the client's choice. Ids of tool calls, signatures
and thoughts stay where they belong: another vendor refuses them. Bodies are not changed in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from headgate.dialect.llm import idents, ran_code
from headgate.dialect.llm.contract import Json
from headgate.dialect.llm.idents import Idents

# Vendors of chat completions that refuse members of messages that they do not know.
STRICT = frozenset({"openai", "azure", "copilot", "mistral", "groq", "cerebras"})
# Members of an assistant's message about its reasoning.
REASONING = frozenset({"reasoning_content", "reasoning_signature", "reasoning_details", "thinking_blocks"})
# Ids of items and of tools that this gateway makes for what other vendors thought and ran: no vendor knows them.
MADE = re.compile(r"(?:rs|ws|ci|mcp|srvtoolu)_[0-9a-f]{24}_\d+")
MADE_ITEMS = frozenset({"reasoning", "web_search_call", "code_interpreter_call", "mcp_call"})
THINKING = ("thinking", "redacted_thinking")

Clean = Callable[[Json, str], Json]


def messages(body: Json, vendor: str) -> Json:
    """Return a Messages request without unsigned thoughts, with ids that Anthropic takes.

    A thinking budget is left out where the vendor would want to see the thought in front of the last tool calls.
    """
    given = body.get("messages")
    if not isinstance(given, list):
        return body
    turns: list[Any] = []
    for turn in given:
        found = turn.get("content") if isinstance(turn, dict) else None
        if isinstance(found, list):
            blocks = [_block(block) for block in _with_code_as_text(found) if not is_refused(block)]
            if found and not blocks:
                continue
            turn = {**turn, "content": blocks}
        turns.append(turn)
    out = {**body, "messages": turns}
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "enabled" and in_tool_loop(turns):
        out["thinking"] = {"type": "disabled"}
    return out


def _with_code_as_text(blocks: list[Any]) -> list[Any]:
    """Return blocks with the code that another vendor has run as text."""
    told = [block for block in blocks if isinstance(block, dict)]
    runs = {ident: ran for ident, ran in ran_code.of_blocks(told).items() if _is_made(ident)}
    if not runs:
        return blocks
    out: list[Any] = []
    for block in blocks:
        ran = ran_code.of_block(block, runs) if isinstance(block, dict) else None
        out += [block] if ran is None else [{"type": "text", "text": ran_code.text(one)} for one in ran]
    return out


def in_tool_loop(turns: list[Any]) -> bool:
    """Return whether the last turn has tool results, and the one with their calls does not begin with a thought."""
    if len(turns) < 2 or not any(kind == "tool_result" for kind in _kinds(turns[-1])):
        return False
    said = _kinds(turns[-2])
    return turns[-2].get("role") == "assistant" and bool(said) and said[0] not in THINKING


def _kinds(turn: Any) -> list[Any]:
    content = turn.get("content") if isinstance(turn, dict) else None
    if not isinstance(content, list):
        return []
    return [block.get("type") if isinstance(block, dict) else None for block in content]


def is_refused(block: Any) -> bool:
    """Return whether a block is a thought that nobody has signed, or a tool that another vendor has run."""
    if not isinstance(block, dict):
        return False
    if block.get("type") == "thinking":
        return not block.get("signature")
    if block.get("type") == "redacted_thinking":
        return idents.is_sealed(block.get("data"))
    return _is_made(block.get("id") if block.get("type") == "server_tool_use" else block.get("tool_use_id"))


def _block(block: Any) -> Any:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text" and isinstance(block.get("citations"), list):
        return _cited(block)
    if kind == "tool_use":
        return _fitted(block, "id", idents.MESSAGES)
    return _fitted(block, "tool_use_id", idents.MESSAGES) if kind == "tool_result" else block


def _cited(block: Json) -> Json:
    """Return a text block without citations that another vendor has made: they have no index."""
    kept = [one for one in block["citations"] if not isinstance(one, dict) or one.get("encrypted_index") != ""]
    if len(kept) == len(block["citations"]):
        return block
    made = {name: value for name, value in block.items() if name != "citations"}
    return {**made, "citations": kept} if kept else made


def _is_made(ident: Any) -> bool:
    return isinstance(ident, str) and MADE.fullmatch(ident) is not None


def completions(body: Json, vendor: str) -> Json:
    """Return a chat completions request with ids that the vendor takes, without reasoning that it refuses."""
    given = body.get("messages")
    if not isinstance(given, list):
        return body
    ids = idents.of_completions(vendor)
    return {**body, "messages": [_chat(turn, ids, vendor in STRICT) for turn in given]}


def _chat(turn: Any, ids: Idents, strict: bool) -> Any:
    if not isinstance(turn, dict):
        return turn
    turn = _fitted(turn, "tool_call_id", ids)
    if strict and not REASONING.isdisjoint(turn):
        turn = {name: value for name, value in turn.items() if name not in REASONING}
    calls = turn.get("tool_calls")
    if isinstance(calls, list):
        turn = {**turn, "tool_calls": [_fitted(call, "id", ids) for call in calls]}
    return turn


def responses(body: Json, vendor: str) -> Json:
    """Return a Responses request with ids that OpenAI takes, without items of what other vendors thought and ran.

    Code that they have run is text.
    """
    found = body.get("input")
    if not isinstance(found, list):
        return body
    items = [made for item in found for made in _items(item)]
    return {**body, "input": [_fitted(item, "call_id", idents.RESPONSES) for item in items]}


def _items(item: Any) -> list[Any]:
    """Return an item as OpenAI takes it: code that another vendor has run as text, nothing for what else it did."""
    if not _is_foreign(item):
        return [item]
    ran = ran_code.of_item(item)
    return [] if ran is None else [{"type": "message", "role": "assistant", "content": ran_code.text(ran)}]


def _is_foreign(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") in MADE_ITEMS and _is_made(item.get("id"))


def _fitted(holder: Any, name: str, ids: Idents) -> Any:
    ident = holder.get(name) if isinstance(holder, dict) else None
    return {**holder, name: ids.fit(ident)} if isinstance(ident, str) and not ids.fits(ident) else holder


def converse(body: Json, vendor: str, claude: bool) -> Json:
    """Return a Converse request with ids that Bedrock takes, without thoughts of other vendors.

    `claude`: the model refuses thoughts that nobody has signed, and thinking behind calls without their thought.
    """
    given = body.get("messages")
    if not isinstance(given, list):
        return body
    turns: list[Any] = []
    for turn in given:
        found = turn.get("content") if isinstance(turn, dict) else None
        if isinstance(found, list):
            blocks = [_converse_block(block) for block in found if not _is_refused_by_bedrock(block, claude)]
            if found and not blocks:
                continue
            turn = {**turn, "content": blocks}
        turns.append(turn)
    out = {**body, "messages": turns}
    extra = body.get("additionalModelRequestFields")
    extra = extra if isinstance(extra, dict) else {}
    thinking = extra.get("thinking")
    if claude and isinstance(thinking, dict) and thinking.get("type") == "enabled" and _calls_without_thought(turns):
        out["additionalModelRequestFields"] = {name: value for name, value in extra.items() if name != "thinking"}
    return out


def _converse_block(block: Any) -> Any:
    for name in ("toolUse", "toolResult"):
        if isinstance(block, dict) and isinstance(block.get(name), dict):
            return {**block, name: _fitted(block[name], "toolUseId", idents.CONVERSE)}
    return block


def _is_refused_by_bedrock(block: Any, claude: bool) -> bool:
    """Return whether a block is a thought of another vendor, or one that nobody has signed."""
    reasoning = block.get("reasoningContent") if isinstance(block, dict) else None
    if not isinstance(reasoning, dict):
        return False
    data, told = reasoning.get("redactedContent"), reasoning.get("reasoningText")
    if isinstance(data, str):
        return idents.unwrapped(data) is not None
    return claude and isinstance(told, dict) and not told.get("signature")


def _calls_without_thought(turns: list[Any]) -> bool:
    """Return whether the last turn has tool results, and the one with their calls does not begin with a thought."""
    named = [
        [next(iter(block), "") for block in turn["content"] if isinstance(block, dict)]
        for turn in turns[-2:]
        if isinstance(turn, dict) and isinstance(turn.get("content"), list)
    ]
    return len(named) == 2 and "toolResult" in named[1] and named[0][:1] != ["reasoningContent"]


# Client formats in which conversations go on, and what makes their histories fit.
CLEAN: dict[str, Clean] = {
    "completions": completions, "messages": messages, "count_tokens": messages, "responses": responses,
}  # fmt: skip
