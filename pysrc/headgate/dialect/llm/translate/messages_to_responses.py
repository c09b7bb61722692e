"""Translates Messages requests to Responses, for models that support only this format.

Source: https://platform.claude.com/docs/en/api/messages
and https://platform.openai.com/docs/api-reference/responses/create.
"""

from __future__ import annotations

from typing import Any

from headgate.dialect.llm import content, fields, history, idents, ran_code, strict_tools, vendor_tools
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable
from headgate.dialect.llm.sayable import Past
from headgate.dialect.llm.translate import messages_to_completions as chat
from headgate.dialect.llm.translate.completions_to_responses import ENCRYPTED
from headgate_engine.llm.translate.evidence import is_ran, is_result, messages_citation, responses_annotation

DROPS = (
    "`stop_sequences`, `top_k` and every other field that is not listed above",
    "server tools other than `web_search` (without `max_uses` and `blocked_domains`) and `code_execution`; their "
    "results in earlier turns, except for code, which is sent as text; citations of document locations in earlier "
    "turns",
    "search results as such (they are sent as text)",
    "refused with 400: documents by id, effort without thinking",
    "`cache_control`, except in `system` blocks",
    "thinking blocks of earlier turns from other vendors",
    "`strict` of tools whose schema has open objects, optional properties, or keywords that OpenAI does not accept "
    "in strict schemas",
)


def request(body: Json, options: Options) -> TranslatedRequest:
    """Return the provider's request. Raises Untranslatable."""
    dropped: list[str] = []
    model = content.model_of(body, options.model)
    out: Json = {"model": model, "input": [], "store": False}
    _system(body, out)
    messages = fields.objects(body, "messages")
    if not messages:
        raise Untranslatable("messages", "must not be empty")
    for position, message in enumerate(messages):
        out["input"] += _items(message, position, dropped)
    limit = fields.integer(body, "max_tokens")
    if limit is not None:
        out["max_output_tokens"] = limit
    fields.copy(body, out, {"temperature": "temperature", "top_p": "top_p", "metadata": "metadata"})
    tools = [_tool(tool, dropped) for tool in chat.custom_tools(body, dropped)]
    tools += [vendor_tools.to_responses(tool, at, dropped) for at, tool in chat.server_tools(body, dropped)]
    if tools:
        out["tools"] = tools
        out.update(_choice(body))
    effort = _effort(body)
    if effort is not None:
        out["reasoning"] = {"effort": "xhigh" if effort == "max" else effort}
        out["include"] = [ENCRYPTED]
    form = chat.output_format(body, options.vendor)
    if form is not None:
        out["text"] = {"format": {"type": "json_schema", **form}}
    stream = bool(fields.flag(body, "stream"))
    if stream:
        out["stream"] = True
    requested = str(body.get("model") or model)
    return TranslatedRequest(body=out, stream=stream, model=model, requested=requested, dropped=tuple(dropped))


def _system(body: Json, out: Json) -> None:
    """Set `instructions` from the system texts.

    If a text has `cache_control`, they become a system message instead: instructions cannot have cache breakpoints.
    """
    if isinstance(body.get("system"), str):
        out["instructions"] = body["system"]
        return
    blocks = fields.objects(body, "system")
    texts = [fields.needed_text(block, "text", "system") for block in blocks]
    if any(block.get("cache_control") for block in blocks):
        parts: list[Json] = []
        for block, text in zip(blocks, texts, strict=True):
            part: Json = {"type": "input_text", "text": text}
            if block.get("cache_control"):
                part["prompt_cache_breakpoint"] = dict(chat.BREAKPOINT)
            parts.append(part)
        out["input"].append({"type": "message", "role": "system", "content": parts})
    elif texts:
        out["instructions"] = "\n".join(texts)


def _items(message: Json, position: int, dropped: list[str]) -> list[Json]:
    """Return the input items of one message: one item with texts and images, and one for each tool call or result."""
    at = f"messages[{position}]"
    role = fields.needed_text(message, "role", at)
    if role not in ("user", "assistant", "system"):
        raise Untranslatable(f"{at}.role", "must be user or assistant")
    out: list[Json] = []
    parts: list[Json] = []
    # The provider wants a thought in front of what it led to.
    thoughts: list[Json] = []
    runs: ran_code.Runs | None = None
    blocks = chat.blocks_of(message, at)
    for index, block in enumerate(blocks):
        here = f"{at}.content[{index}]"
        kind = fields.text(block, "type", here)
        if kind == "text":
            text = fields.needed_text(block, "text", here)
            if role == "assistant":
                parts.append({"type": "output_text", "text": text, "annotations": _annotations(block, here, dropped)})
            else:
                parts.append({"type": "input_text", "text": text})
        elif kind in ("image", "document", "search_result") and role == "user":
            parts.append(_shown(block, kind, here, dropped))
        elif kind == "tool_use" and role == "assistant":
            call = chat.tool_call(block, here, idents.RESPONSES)
            out.append({"type": "function_call", "call_id": call["id"], **call["function"]})
        elif kind == "tool_result" and role == "user":
            out.append(_result(block, here, dropped))
        elif kind == "redacted_thinking" and (own := idents.unsealed(block.get("data"))) is not None:
            thoughts.append(own)
        elif kind in history.THINKING:
            # Another vendor thought it, who alone can read it.
            dropped.append(Past(here))
        elif is_ran(kind) or is_result(kind):
            runs = ran_code.of_blocks(blocks) if runs is None else runs
            ran = ran_code.of_block(block, runs) if role == "assistant" else None
            if ran is None:
                dropped.append(Past(here))
            else:
                parts += [{"type": "output_text", "text": ran_code.text(one), "annotations": []} for one in ran]
        else:
            raise Untranslatable(here, f"{kind!r} cannot be carried")
    if not parts:
        return thoughts + out
    said: Json = {"type": "message", "role": role, "content": parts}
    if role == "assistant":
        return [*thoughts, {**said, "id": f"msg_{position}", "status": "completed"}, *out]
    # Results come first, because they must follow the calls of the previous message.
    return [*out, said]


def _annotations(block: Json, at: str, dropped: list[str]) -> list[Json]:
    """Return the citations of what the assistant has said, as far as they are URLs."""
    out: list[Json] = []
    length = len(block["text"])
    for citation in fields.objects(block, "citations", at):
        found = messages_citation(citation, 0, length)
        made = None if found is None else responses_annotation(found, 0)
        if made is None:
            dropped.append(Past(f"{at}.citations"))
        else:
            out.append(made)
    return out


def _shown(block: Json, kind: str, at: str, dropped: list[str]) -> Json:
    """Return the part of an image, a document or a search result."""
    if kind == "image":
        return _image(block, at)
    chat.uncited(block, at, dropped)
    if kind == "search_result":
        return {"type": "input_text", "text": chat.found_text(block, at)}
    source = fields.obj(block, "source", at) or {}
    form = fields.text(source, "type", f"{at}.source")
    if form == "url":
        return {"type": "input_file", "file_url": fields.needed_text(source, "url", f"{at}.source")}
    part = chat.document(block, at)
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    return {"type": "input_file", **part["file"]}


def _image(block: Json, at: str) -> Json:
    source = fields.obj(block, "source", at) or {}
    if fields.text(source, "type", f"{at}.source") == "file":
        file = fields.needed_text(source, "file_id", f"{at}.source")
        return {"type": "input_image", "detail": "auto", "file_id": file}
    return {"type": "input_image", "detail": "auto", "image_url": chat.image_url(block, at)}


def _result(block: Json, at: str, dropped: list[str]) -> Json:
    parts: list[Json] = []
    for index, inner in enumerate(chat.blocks_of(block, at)):
        here = f"{at}.content[{index}]"
        kind = fields.text(inner, "type", here)
        if kind == "text":
            parts.append({"type": "input_text", "text": fields.needed_text(inner, "text", here)})
        elif kind in ("image", "document", "search_result"):
            parts.append(_shown(inner, kind, here, dropped))
        else:
            raise Untranslatable(here, f"{kind!r} cannot be carried")
    texts = [part["text"] for part in parts if "text" in part]
    return {
        "type": "function_call_output",
        "call_id": idents.RESPONSES.fit(fields.needed_text(block, "tool_use_id", at)),
        "output": "\n".join(texts) if len(texts) == len(parts) else parts,
        "status": "incomplete" if fields.flag(block, "is_error", at) else "completed",
    }


def _tool(tool: Json, dropped: list[str]) -> Json:
    out: Json = {"type": "function", "name": fields.needed_text(tool, "name", "tools")}
    if (description := fields.text(tool, "description", "tools")) is not None:
        out["description"] = description
    out["parameters"] = fields.obj(tool, "input_schema", "tools") or {"type": "object", "properties": {}}
    out["strict"] = bool(strict_tools.asked(tool, dropped))
    return out


def _choice(body: Json) -> Json:
    """Return the choice as in chat completions, but with the name of a forced tool one level higher."""
    out: dict[str, Any] = chat.choice(body)
    if isinstance(out.get("tool_choice"), dict):
        out["tool_choice"] = {"type": "function", "name": out["tool_choice"]["function"]["name"]}
    return out


def _effort(body: Json) -> str | None:
    kind = fields.text(fields.obj(body, "thinking") or {}, "type", "thinking")
    given = fields.text(fields.obj(body, "output_config") or {}, "effort", "output_config")
    if kind in ("enabled", "adaptive"):
        return given or "high"
    if given is not None:
        raise Untranslatable("output_config.effort", "needs thinking")
    return None
