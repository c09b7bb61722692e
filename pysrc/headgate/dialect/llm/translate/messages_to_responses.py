"""Translates Messages requests to Responses, for models that support only this format."""

from __future__ import annotations

from typing import Any

from headgate.dialect.llm import content, fields, history, idents
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable
from headgate.dialect.llm.sayable import Past
from headgate.dialect.llm.translate import messages_to_completions as chat
from headgate_engine.llm.translate.evidence import is_ran, is_result

DROPS = (
    "`stop_sequences`, `top_k` and every other field that is not carried",
    "server tools and their results, citations of earlier turns",
    "refused instead of dropped: documents, search results, non-text tool results, effort without thinking",
    "`cache_control` other than of `system` blocks",
    "thinking blocks of earlier turns",
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
    tools = [_tool(tool) for tool in chat.custom_tools(body, dropped)]
    if tools:
        out["tools"] = tools
        out.update(_choice(body))
    effort = _effort(body)
    if effort is not None:
        out["reasoning"] = {"effort": "xhigh" if effort == "max" else effort}
    schema = chat.output_schema(body)
    if schema is not None:
        out["text"] = {"format": {"type": "json_schema", "name": "structured_output", "schema": schema}}
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
    for index, block in enumerate(chat.blocks_of(message, at)):
        here = f"{at}.content[{index}]"
        kind = fields.text(block, "type", here)
        if kind == "text":
            if block.get("citations"):
                dropped.append(Past(f"{here}.citations"))
            text = fields.needed_text(block, "text", here)
            if role == "assistant":
                parts.append({"type": "output_text", "text": text, "annotations": []})
            else:
                parts.append({"type": "input_text", "text": text})
        elif kind == "image" and role == "user":
            parts.append(_image(block, here))
        elif kind == "tool_use" and role == "assistant":
            call = chat.tool_call(block, here, idents.RESPONSES)
            out.append({"type": "function_call", "call_id": call["id"], **call["function"]})
        elif kind == "tool_result" and role == "user":
            out.append(_result(block, here))
        elif kind in history.THINKING:
            # Another vendor thought it, who alone can read it.
            dropped.append(Past(here))
        elif is_ran(kind) or is_result(kind):
            dropped.append(Past(here))
        else:
            raise Untranslatable(here, f"{kind!r} cannot be carried")
    if not parts:
        return out
    said: Json = {"type": "message", "role": role, "content": parts}
    if role == "assistant":
        return [{**said, "id": f"msg_{position}", "status": "completed"}, *out]
    # Results come first, because they must follow the calls of the previous message.
    return [*out, said]


def _image(block: Json, at: str) -> Json:
    source = fields.obj(block, "source", at) or {}
    if fields.text(source, "type", f"{at}.source") == "file":
        file = fields.needed_text(source, "file_id", f"{at}.source")
        return {"type": "input_image", "detail": "auto", "file_id": file}
    return {"type": "input_image", "detail": "auto", "image_url": chat.image_url(block, at)}


def _result(block: Json, at: str) -> Json:
    texts = []
    for index, inner in enumerate(chat.blocks_of(block, at)):
        if inner.get("type") != "text":
            raise Untranslatable(f"{at}.content[{index}]", "tool results must be text")
        texts.append(fields.needed_text(inner, "text", f"{at}.content[{index}]"))
    return {
        "type": "function_call_output",
        "call_id": idents.RESPONSES.fit(fields.needed_text(block, "tool_use_id", at)),
        "output": "\n".join(texts),
        "status": "incomplete" if fields.flag(block, "is_error", at) else "completed",
    }


def _tool(tool: Json) -> Json:
    out: Json = {"type": "function", "name": fields.needed_text(tool, "name", "tools")}
    if (description := fields.text(tool, "description", "tools")) is not None:
        out["description"] = description
    out["parameters"] = fields.obj(tool, "input_schema", "tools") or {"type": "object", "properties": {}}
    out["strict"] = bool(fields.flag(tool, "strict", "tools"))
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
