"""What vendors refuse in a request, as strictly as they do: `faults(format, body, model)` lists it.

Shapes are left to the vendors' SDKs (llm_sdk_shapes.py). Here is what those do not say: patterns and lengths of ids, order
of turns, signatures, what goes with thinking. Sources are the vendors' references and the messages of their errors.

Signatures in tests are Base64 of a text that begins with the vendor's name, so that a vendor knows its own.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
FORCED = ("any", "tool")
ADAPTIVE_ONLY = ("opus-4-7", "opus-4-8", "sonnet-5", "opus-5", "mythos", "fable")
WORD = re.compile(r"[a-zA-Z0-9_-]+")
ANTHROPIC, GEMINI, OPENAI = "anthropic", "gemini", "openai"
SKIPPED = "skip_thought_signature_validator"


def signed(vendor: str, text: str) -> str:
    """Return a signature by a vendor."""
    return base64.b64encode(f"{vendor}:{text}".encode()).decode()


def is_signed(vendor: str, signature: object) -> bool:
    """Return whether a vendor made this signature."""
    try:
        return isinstance(signature, str) and base64.b64decode(signature).startswith(f"{vendor}:".encode())
    except ValueError:
        return False


def thinking_faults(thinking: Json, limit: int, sampling: Json, model: str, forced: bool) -> list[str]:
    """Return what Anthropic refuses about thinking, in Messages and in Converse."""
    found = []
    adaptive_only = any(name in model for name in ADAPTIVE_ONLY)
    kind = thinking.get("type")
    if kind == "enabled":
        if adaptive_only:
            found.append('"thinking.type.enabled" is not supported for this model')
        if thinking["budget_tokens"] < 1024:
            found.append("thinking.budget_tokens: must be at least 1024")
        if limit <= thinking["budget_tokens"]:
            found.append("max_tokens must be greater than thinking.budget_tokens")
        if sampling.get("temperature", 1) != 1:
            found.append("temperature may only be set to 1 when thinking is enabled")
    elif kind == "adaptive":
        found += ["adaptive thinking has no budget"] if "budget_tokens" in thinking else []
    if adaptive_only and sampling:
        found.append("sampling parameters are not supported for this model")
    if kind in ("enabled", "adaptive") and forced:
        found.append("thinking may not be enabled when tool_choice forces tool use")
    return found


def _blocks(turn: Json) -> list[Json]:
    content = turn["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def turn_faults(turns: list[tuple[str, list[Json]]], thinking: bool) -> list[str]:
    """Return what Anthropic and Bedrock refuse in (role, blocks) turns with Anthropic's names of blocks."""
    found = []
    if not turns or turns[0][0] != "user":
        found.append("the first message must use the user role")
    called: list[str] = []
    seen: set[str] = set()
    for at, (role, blocks) in enumerate(turns):
        if not blocks:
            found.append(f"messages.{at}: must have non-empty content")
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(called):
            found.append(f"messages.{at}: tool results {results} for the calls {called}")
        if results and any(block["type"] != "tool_result" for block in blocks[: len(results)]):
            found.append(f"messages.{at}: tool results must come first")
        called = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if not seen.isdisjoint(called) or len(set(called)) < len(called):
            found.append(f"messages.{at}: ids of calls must be unique")
        seen.update(called)
        ran = {block["id"] for block in blocks if block["type"] == "server_tool_use"}
        for block in blocks:
            found += [f"messages.{at}: {fault}" for fault in _block_faults(block, role, ran)]
    if called:
        found.append("tool_use ids were found without tool_result blocks")
    if thinking and len(turns) > 1 and any(block["type"] == "tool_result" for block in turns[-1][1]):
        first = turns[-2][1][0]["type"]
        if first not in ("thinking", "redacted_thinking"):
            found.append(f"expected `thinking` or `redacted_thinking`, but found `{first}`")
    return found


def _block_faults(block: Json, role: str, ran: set[str]) -> list[str]:
    kind = block["type"]
    if kind == "text":
        found = [] if block["text"].strip() else ["text content blocks must be non-empty"]
        indices = [one["encrypted_index"] for one in block.get("citations", []) if "encrypted_index" in one]
        return [*found, *("invalid encrypted_index" for one in indices if not is_signed(ANTHROPIC, one))]
    if kind == "tool_use":
        return [] if WORD.fullmatch(block["id"]) and role == "assistant" else [f"tool_use.id {block['id']!r}"]
    if kind == "tool_result":
        return [] if WORD.fullmatch(block["tool_use_id"]) and role == "user" else [f"id {block['tool_use_id']!r}"]
    if kind == "thinking":
        return [] if is_signed(ANTHROPIC, block["signature"]) else ["Invalid `signature` in `thinking` block"]
    if kind == "redacted_thinking":
        return [] if is_signed(ANTHROPIC, block["data"]) else ["Invalid `data` in `redacted_thinking` block"]
    if kind == "web_search_tool_result" and not all(
        is_signed(ANTHROPIC, one["encrypted_content"]) for one in block["content"]
    ):
        return ["invalid encrypted_content"]
    if kind.endswith("_tool_result"):
        return [] if block["tool_use_id"] in ran else [f"{kind} without its server_tool_use"]
    return []


def schema_faults(schema: Any, at: str = "output_config.format.schema") -> list[str]:
    """Return what Anthropic refuses in the schema of an answer."""
    if isinstance(schema, list):
        return [fault for one in schema for fault in schema_faults(one, at)]
    if not isinstance(schema, dict):
        return []
    found = []
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        found.append(f"{at}: For 'object' type, 'additionalProperties' must be explicitly set to false")
    number, text = ("minimum", "maximum", "multipleOf"), ("minLength", "maxLength", "format")
    limits = {"integer": number, "number": number, "string": text, "array": ("maxItems", "uniqueItems")}
    for name in limits.get(str(schema.get("type")), ()):
        if name in schema and (name != "format" or schema[name] not in ("date", "date-time", "uri", "email")):
            found.append(f"{at}: For '{schema['type']}' type, property '{name}' is not supported")
    for name in ("properties", "$defs"):
        found += schema_faults(list(schema.get(name, {}).values()), f"{at}.{name}")
    return found + [fault for name in ("items", "anyOf", "allOf") for fault in schema_faults(schema.get(name), f"{at}.{name}")]


def messages_faults(body: Json, model: str) -> list[str]:
    """Return what Anthropic refuses."""
    sampling = {name: body[name] for name in ("temperature", "top_p", "top_k") if name in body}
    forced = body.get("tool_choice", {}).get("type") in FORCED
    thinking = body.get("thinking", {})
    turns = [(turn["role"], _blocks(turn)) for turn in body["messages"]]
    return [
        *thinking_faults(thinking, body["max_tokens"], sampling, body["model"], forced),
        *turn_faults(turns, thinking.get("type") == "enabled"),
        *schema_faults((body.get("output_config", {}).get("format") or {}).get("schema")),
    ]


def converse_faults(body: Json, model: str) -> list[str]:
    """Return what Bedrock refuses for Claude."""
    extra, inference = body.get("additionalModelRequestFields", {}), body.get("inferenceConfig", {})
    sampling = {name: inference[name] for name in ("temperature", "topP") if name in inference}
    forced = not {"any", "tool"}.isdisjoint(body.get("toolConfig", {}).get("toolChoice", {}))
    thinking = extra.get("thinking", {})
    form = body.get("outputConfig", {}).get("textFormat", {}).get("structure", {}).get("jsonSchema", {})
    turns, found = [], schema_faults(json.loads(form.get("schema", "null")))
    for turn in body["messages"]:
        blocks = [_of_converse(block) for block in turn["content"]]
        found += [f"toolUseId {one['id']!r}" for one in blocks if len(one.get("id", "")) > 64]
        turns.append((turn["role"], blocks))
    return [
        *found, *thinking_faults(thinking, inference["maxTokens"], sampling, model, forced),
        *turn_faults(turns, thinking.get("type") == "enabled"),
    ]  # fmt: skip


def _of_converse(block: Json) -> Json:
    """Return a block by Anthropic's names."""
    if "toolUse" in block:
        return {"type": "tool_use", "id": block["toolUse"]["toolUseId"]}
    if "toolResult" in block:
        return {"type": "tool_result", "tool_use_id": block["toolResult"]["toolUseId"]}
    if "reasoningContent" in block:
        reasoning = block["reasoningContent"]
        if "redactedContent" in reasoning:
            return {"type": "redacted_thinking", "data": reasoning["redactedContent"]}
        return {"type": "thinking", "signature": reasoning["reasoningText"]["signature"]}
    return {"type": "text", "text": block["text"]} if "text" in block else {"type": next(iter(block))}


def completions_faults(body: Json, model: str) -> list[str]:
    """Return what OpenAI refuses."""
    found: list[str] = []
    waiting: list[str] = []
    for at, message in enumerate(body["messages"]):
        where = f"messages[{at}]"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                found.append(f"{where}: 'tool' must be a response to a preceding message with 'tool_calls'")
            waiting = [ident for ident in waiting if ident != message["tool_call_id"]]
            continue
        if waiting:
            found.append(f"{where}: no tool message for {waiting}")
        waiting = [call["id"] for call in message.get("tool_calls", [])]
        found += [f"{where}: id {ident!r} is too long" for ident in waiting if not 0 < len(ident) <= 40]
        if len(set(waiting)) < len(waiting):
            found.append(f"{where}: ids must be unique")
        if message["role"] == "assistant" and not waiting and not message.get("content") and not message.get("refusal"):
            found += [] if message.get("content") == "" else [f"{where}: expected content"]
    return [*found, f"no tool message for {waiting}"] if waiting else found


def compatible_faults(body: Json, model: str) -> list[str]:
    """Return what Gemini's endpoint for chat completions refuses."""
    found = completions_faults(body, model)
    for at, message in enumerate(body["messages"]):
        for index, call in enumerate(message.get("tool_calls", [])):
            signature = call.get("extra_content", {}).get("google", {}).get("thought_signature")
            if index == 0 and signature is None and "gemini-3" in body["model"]:
                found.append(f"messages[{at}]: function call is missing a thought_signature")
            if signature not in (None, SKIPPED) and not is_signed(GEMINI, signature):
                found.append(f"messages[{at}]: thought signature is not valid")
    return found


def responses_faults(body: Json, model: str) -> list[str]:
    """Return what OpenAI refuses."""
    found, called = [], set()
    answered: set[str] = set()
    for at, item in enumerate([] if isinstance(body["input"], str) else body["input"]):
        kind, ident = item.get("type", "message"), item.get("id")
        prefix = {"message": "msg_", "function_call": "fc_", "reasoning": "rs_"}.get(kind)
        if ident is not None and prefix is not None and not ident.startswith(prefix):
            found.append(f"input[{at}].id: expected an id that begins with {prefix}")
        if kind == "reasoning" and not is_signed(OPENAI, item.get("encrypted_content")):
            found.append(f"input[{at}]: item {ident!r} not found")
        if kind in ("web_search_call", "code_interpreter_call") and not re.fullmatch(r"\w\w_[0-9a-f]{48}", ident or ""):
            found.append(f"input[{at}]: item {ident!r} not found")
        if "call_id" in item and not 0 < len(item["call_id"]) <= 64:
            found.append(f"input[{at}].call_id: string too long")
        if kind == "function_call":
            called.add(item["call_id"])
        if kind == "function_call_output":
            answered.add(item["call_id"])
            if item["call_id"] not in called:
                found.append(f"input[{at}]: no tool call found for {item['call_id']!r}")
    return [*found, *(f"no tool output found for {ident!r}" for ident in called - answered)]


def gemini_faults(body: Json, model: str) -> list[str]:
    """Return what Gemini refuses."""
    found: list[str] = []
    called: list[str] = []
    third = "gemini-3" in model
    for at, turn in enumerate(body["contents"]):
        parts = turn["parts"]
        if turn["role"] != ("user", "model")[at % 2]:
            found.append(f"contents[{at}]: roles must alternate, the user's first")
        if not parts:
            found.append(f"contents[{at}]: parts must not be empty")
        answered = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        if answered != called:
            found.append(f"contents[{at}]: the number of function response parts must equal that of the calls")
        called = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        calls = [part for part in parts if "functionCall" in part]
        if third and calls and "thoughtSignature" not in calls[0]:
            found.append(f"contents[{at}]: function call is missing a thought_signature")
        for part in parts:
            signature = part.get("thoughtSignature")
            if signature not in (None, SKIPPED) and not is_signed(GEMINI, signature):
                found.append(f"contents[{at}]: thought signature is not valid")
    return [*found, f"no function response for {called}"] if called else found


FAULTS: dict[str, Callable[[Json, str], list[str]]] = {
    "messages": messages_faults, "converse": converse_faults, "completions": completions_faults,
    "responses": responses_faults, "gemini": gemini_faults, "compatible": compatible_faults,
}  # fmt: skip


def faults(format: str, body: Json, model: str = "") -> list[str]:
    """Return what a vendor of this format refuses. `model` is needed where the path names it."""
    return FAULTS[format](body, model)
