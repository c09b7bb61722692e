"""Translates chat completions requests to Responses, for models that are served in that format only.

Source: https://platform.openai.com/docs/guides/migrate-to-responses.
"""

from __future__ import annotations

from typing import Any

from headgate.dialect.llm import content, custom_tools, efforts, fields, idents, vendor_tools
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable
from headgate.dialect.llm.sayable import Past
from headgate.dialect.llm.translate.tool_choice import choice_of, functions_of
from headgate_engine.llm.translate.evidence import responses_annotation, url_annotation

DROPS = (
    "`stop`, `seed`, `frequency_penalty`, `presence_penalty`, `logit_bias`, `modalities`, `audio`, "
    "`prediction` and every other field that is not listed above",
    "`name` of messages; tools other than functions and custom tools",
    "`reasoning_content` and `thinking_blocks` of earlier turns from other vendors",
    "refused with 400: audio parts",
)
# Value of `include` for thoughts in a form that the provider takes back without having kept them.
ENCRYPTED = "reasoning.encrypted_content"
# The smallest `max_output_tokens` that the provider takes.
LEAST_LIMIT = 16
SAME = (
    "temperature", "top_p", "metadata", "user", "service_tier", "safety_identifier", "prompt_cache_key",
    "prompt_cache_retention", "parallel_tool_calls",
)  # fmt: skip


def request(body: Json, options: Options) -> TranslatedRequest:
    """Return the provider's request. Raises Untranslatable."""
    dropped: list[str] = []
    model = content.model_of(body, options.model)
    out: Json = {"model": model, "input": _input(body, dropped), "store": bool(fields.flag(body, "store"))}
    limit = fields.integer(body, "max_completion_tokens")
    limit = fields.integer(body, "max_tokens") if limit is None else limit
    if limit is not None:
        out["max_output_tokens"] = max(limit, LEAST_LIMIT)
    fields.copy(body, out, {name: name for name in SAME})
    tools = _tools(body, dropped)
    if tools:
        out["tools"] = tools
        if (choice := _choice(body, custom_tools.named("completions", body))) is not None:
            out["tool_choice"] = choice
    else:
        out.pop("parallel_tool_calls", None)
    if (effort := _effort(body)) is not None:
        out["reasoning"] = {"effort": effort}
        # Models without reasoning refuse it.
        out["include"] = [ENCRYPTED]
    if fields.flag(body, "logprobs"):
        out["include"] = [*out.get("include", ()), "message.output_text.logprobs"]
    fields.copy(body, out, {"top_logprobs": "top_logprobs"})
    if (text := _text(body)):
        out["text"] = text
    stream = bool(fields.flag(body, "stream"))
    if stream:
        out["stream"] = True
    usage = bool(fields.flag(fields.obj(body, "stream_options") or {}, "include_usage", "stream_options"))
    return TranslatedRequest(
        body=out, stream=stream, model=model, requested=str(body.get("model") or model), dropped=tuple(dropped),
        include_usage=usage,
    )  # fmt: skip


def _input(body: Json, dropped: list[str]) -> list[Json]:
    out: list[Json] = []
    # Ids of calls of custom tools, whose results are items of their own kind.
    customs: set[str] = set()
    messages = fields.objects(body, "messages")
    if not messages:
        raise Untranslatable("messages", "must not be empty")
    for position, message in enumerate(messages):
        at = f"messages[{position}]"
        role = fields.needed_text(message, "role", at)
        if role in ("system", "developer", "user"):
            if parts := _parts(message, at, dropped):
                out.append({"type": "message", "role": role, "content": parts})
        elif role == "assistant":
            items = _assistant(message, at, position, dropped)
            customs |= {item["call_id"] for item in items if item["type"] == "custom_tool_call"}
            out += items
        elif role == "tool":
            ident = idents.RESPONSES.fit(fields.needed_text(message, "tool_call_id", at))
            kind = "custom_tool_call_output" if ident in customs else "function_call_output"
            out.append({"type": kind, "call_id": ident, "output": _output(message, at, dropped)})
        elif role == "function":
            # Without an id, call and result cannot be matched, so both are sent as text.
            out.append({"type": "message", "role": "user", "content": _parts(message, at, dropped)})
        else:
            raise Untranslatable(f"{at}.role", "is not known")
    return out


def _parts(message: Json, at: str, dropped: list[str]) -> list[Json]:
    found = message.get("content")
    if isinstance(found, str):
        return [{"type": "input_text", "text": found}]
    out: list[Json] = []
    for position, part in enumerate(fields.objects(message, "content", at)):
        made = _part(part, f"{at}.content[{position}]")
        if made is None:
            dropped.append(f"{at}.content[{position}]")
        else:
            out.append(made)
    return out


def _part(part: Json, at: str) -> Json | None:
    kind = fields.text(part, "type", at)
    if kind in ("text", "refusal"):
        return {"type": "input_text", "text": fields.needed_text(part, kind, at)}
    if kind == "image_url":
        holder = {"url": part["image_url"]} if isinstance(part.get("image_url"), str) else part.get("image_url")
        image: Json = holder if isinstance(holder, dict) else {}
        url = fields.needed_text(image, "url", f"{at}.image_url")
        return {"type": "input_image", "image_url": url, "detail": fields.text(image, "detail", at) or "auto"}
    if kind == "file":
        file = fields.obj(part, "file", at) or {}
        made: Json = {"type": "input_file"}
        fields.copy(file, made, {"file_id": "file_id", "file_data": "file_data", "filename": "filename"})
        if "file_id" not in made and "file_data" not in made:
            raise Untranslatable(f"{at}.file", "must have file_data or file_id")
        return made
    if kind == "input_audio":
        raise Untranslatable(at, "the provider of this model takes no audio")
    return None


def _assistant(message: Json, at: str, position: int, dropped: list[str]) -> list[Json]:
    out = _sealed(message, at)
    parts = _parts(message, at, dropped)
    said = [part["text"] for part in parts if "text" in part]
    if len(said) < len(parts) or message.get("images"):
        # The assistant's own items have only texts.
        dropped.append(Past(f"{at}.images"))
    if refusal := fields.text(message, "refusal", at):
        said.append(refusal)
    old = fields.obj(message, "function_call", at)
    calls = fields.objects(message, "tool_calls", at)
    if old is not None and not calls:
        said.append(content.dump_text(old))
    texts: list[Json] = [{"type": "output_text", "text": text, "annotations": []} for text in said if text]
    notes = [url_annotation(one, 0) for one in fields.objects(message, "annotations", at)]
    if texts and (made := [responses_annotation(one, 0) for one in notes if one is not None]):
        texts[0]["annotations"] = made
    if texts:
        out.append({"type": "message", "id": f"msg_{position}", "role": "assistant", "status": "completed",
                    "content": texts})  # fmt: skip
    for index, call in enumerate(calls):
        out.append(_call(call, f"{at}.tool_calls[{index}]"))
    lost = ("reasoning_content", "reasoning_details", "thinking_blocks")
    if not out or out[0]["type"] != "reasoning":
        dropped += [Past(f"{at}.{name}") for name in lost if message.get(name)]
    return out


def _sealed(message: Json, at: str) -> list[Json]:
    """Return the reasoning items that the provider's thoughts were, by `thinking_blocks` or OpenRouter's details."""
    blocks = fields.objects(message, "thinking_blocks", at)
    out = [item for block in blocks if (item := idents.unsealed(block.get("data"))) is not None]
    for one in fields.objects(message, "reasoning_details", at) if not out else ():
        data, ident = one.get("data"), one.get("id")
        own = one.get("type") == "reasoning.encrypted" and one.get("format") == "openai-responses-v1"
        if own and isinstance(data, str) and isinstance(ident, str):
            out.append({"type": "reasoning", "id": ident, "summary": [], "encrypted_content": data})
    return out


def _call(call: Json, at: str) -> Json:
    ident = idents.RESPONSES.fit(fields.needed_text(call, "id", at))
    function = fields.obj(call, "function", at)
    if function is None:
        custom = fields.obj(call, "custom", at) or {}
        return {"type": "custom_tool_call", "call_id": ident, "name": fields.needed_text(custom, "name", at),
                "input": fields.text(custom, "input", at) or ""}  # fmt: skip
    name, arguments = fields.needed_text(function, "name", at), fields.text(function, "arguments", at) or "{}"
    return {"type": "function_call", "call_id": ident, "name": name, "arguments": arguments}


def _output(message: Json, at: str, dropped: list[str]) -> Any:
    """Return a tool's result: a text as it is, and parts with pictures or files as parts."""
    if isinstance(message.get("content"), str):
        return message["content"]
    parts = _parts(message, at, dropped)
    if all(part["type"] == "input_text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _tools(body: Json, dropped: list[str]) -> list[Json]:
    """Return the functions, the custom tools, and those that the vendor runs."""
    given = functions_of(body, dropped, customs=True)
    out = [custom_tools.to_responses(one, at) if at.endswith(".custom") else _tool(at, one) for at, one in given]
    return out + [vendor_tools.to_responses(tool, at, dropped) for at, tool in vendor_tools.asked_for(body)]


def _tool(at: str, function: Json) -> Json:
    out: Json = {"type": "function", "name": fields.needed_text(function, "name", at)}
    fields.copy(function, out, {"description": "description"})
    out["parameters"] = fields.obj(function, "parameters", at) or {"type": "object", "properties": {}}
    # Schemas of chat completions are not strict unless they say so, those of the provider are.
    out["strict"] = bool(fields.flag(function, "strict", at))
    return out


def _choice(body: Json, customs: frozenset[str]) -> Any:
    choice = choice_of(body)
    if choice is None or choice.names is None:
        return None if choice is None else choice.kind
    tools = [{"type": "custom" if name in customs else "function", "name": name} for name in choice.names]
    if choice.kind == "required" and len(tools) == 1:
        return tools[0]
    return {"type": "allowed_tools", "mode": choice.kind, "tools": tools}


def _effort(body: Json) -> str | None:
    effort = fields.text(body, "reasoning_effort")
    if effort is not None:
        return effort
    own = efforts.own_budget(body)
    return None if own is None else "high" if own > efforts.BUDGETS["high"] else efforts.level_of(own)


def _text(body: Json) -> Json:
    out: Json = {}
    fields.copy(body, out, {"verbosity": "verbosity"})
    form = fields.obj(body, "response_format") or {}
    kind = fields.text(form, "type", "response_format")
    if kind == "json_schema":
        named = fields.obj(form, "json_schema", "response_format") or {}
        told: Json = {"type": "json_schema", "name": fields.text(named, "name", "response_format") or "response"}
        fields.copy(named, told, {name: name for name in ("description", "schema", "strict")})
        if "schema" not in told:
            raise Untranslatable("response_format.json_schema.schema", "is missing")
        out["format"] = told
    elif kind == "json_object":
        out["format"] = {"type": "json_object"}
    return out
