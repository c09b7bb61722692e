"""Translates chat completions requests to Messages (Anthropic, Claude on Vertex AI, and as a step to Converse)."""

from __future__ import annotations

from typing import Any, NamedTuple

from headgate.dialect.llm import content, custom_tools, efforts, fields, idents, ran_code, vendor_tools
from headgate.dialect.llm.closed_schemas import closed
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable
from headgate.dialect.llm.sayable import Past
from headgate.dialect.llm.schemas import described
from headgate.dialect.llm.strict_tools import StrictTools
from headgate.dialect.llm.translate.tool_choice import ToolChoice, choice_of, functions_of, only
from headgate_engine.llm.translate.turns import messages_turn

DROPS = (
    "`frequency_penalty`, `presence_penalty`, `seed`, `logprobs`, `top_logprobs`, `logit_bias`, `modalities`, "
    "`prediction`, `store`, `metadata`, `service_tier` and every other field that is not listed above",
    "audio parts, and files other than PDF and plain text (a last message that consists only of these is refused)",
    "`image_url.detail`, `name` of messages; `strict` of tools for Claude before 4.5, at Vertex AI, and beyond the "
    "vendor's limits",
    "`response_format` of type `json_object`. In schemas, limits of values become part of the description, and "
    "objects become closed",
    "tools other than functions and searches; `search_context_size` of `web_search_options`. Custom tools become "
    "functions with one string, `input`; a grammar becomes part of the description",
    "`temperature`, `top_k`, and `top_p` below 0.95, if `reasoning_effort` is set; for Claude 4.7 and later always. "
    "`reasoning_effort` for Claude before 3.7; for Claude before 4.7 with a forced tool, and after tool results "
    "whose calls were sent back without signed reasoning",
    "`reasoning_content` of earlier turns without `reasoning_signature`; unsigned `thinking_blocks`",
)


CHOICES = {"auto": "auto", "required": "any", "none": "none"}
SCHEMA = "response_format.json_schema.schema"
# Media types of documents that the provider accepts.
DOCUMENTS = frozenset({"application/pdf", "text/plain"})


class Way(NamedTuple):
    """The context of one translation: the dropped fields, and the document types that the provider accepts.

    With `strict`, other documents are refused (Untranslatable) instead of dropped, and names of schemas are kept.
    """

    dropped: list[str]
    documents: frozenset[str]
    strict: bool


def request(body: Json, options: Options, documents: frozenset[str] | None = None) -> TranslatedRequest:
    """Return the provider's request. Raises Untranslatable.

    `documents` are the accepted media types for a strict translation (see Way). None means DOCUMENTS, not strict.
    """
    dropped: list[str] = []
    way = Way(dropped, DOCUMENTS if documents is None else documents, documents is not None)
    messages, system = _messages(body, way)
    model = content.model_of(body, options.model)
    limit = fields.integer(body, "max_completion_tokens")
    limit = fields.integer(body, "max_tokens") if limit is None else limit
    limit = options.max_tokens_default if limit is None else limit
    out: Json = {"model": model, "messages": messages, "max_tokens": limit}
    if system:
        marked = any("cache_control" in block for block in system)
        out["system"] = system if marked else "\n".join(block["text"] for block in system)
    if (stop := [text for text in fields.texts(body, "stop") if text]):
        out["stop_sequences"] = stop
    if (user := fields.text(body, "user")) is not None:
        out["metadata"] = {"user_id": user}
    asked_for = choice_of(body)
    tools = _tools(body, asked_for, StrictTools(model, options.vendor, dropped, _answer_schema(body)))
    for at, tool in vendor_tools.asked_for(body):
        if (made := vendor_tools.to_messages(tool, at, options.vendor, dropped)) is not None:
            tools.append(made)
    if tools:
        out["tools"] = tools
    choice = _choice(body, asked_for, bool(tools))
    if choice is not None:
        out["tool_choice"] = choice
    fields.copy(body, out, {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k"})
    if (form := _output_format(body, way)) is not None:
        out["output_config"] = {"format": form}
    _think(body, out, dropped)
    stream = bool(fields.flag(body, "stream"))
    if stream:
        out["stream"] = True
    usage = bool(fields.flag(fields.obj(body, "stream_options") or {}, "include_usage", "stream_options"))
    return TranslatedRequest(
        body=out, stream=stream, model=model, requested=str(body.get("model") or model), dropped=tuple(dropped),
        include_usage=usage,
    )  # fmt: skip


def _messages(body: Json, way: Way) -> tuple[list[Json], list[Json]]:
    """Return the messages, with adjacent turns of one role joined, and the blocks of the system prompt."""
    out: list[Json] = []
    system: list[Json] = []
    messages = fields.objects(body, "messages")
    if not messages:
        raise Untranslatable("messages", "must not be empty")
    for position, message in enumerate(messages):
        plain = messages_turn(message)
        if plain is not None:
            content.merge_turn(out, *plain)
            continue
        at = f"messages[{position}]"
        role = fields.needed_text(message, "role", at)
        if role in ("system", "developer"):
            system += [block for block in _marked(message, user_blocks(message, at, way)) if block["type"] == "text"]
        elif role == "user":
            lost = len(way.dropped)
            blocks = _marked(message, user_blocks(message, at, way))
            if not blocks and len(way.dropped) > lost and position == len(messages) - 1:
                # It is what is asked: without it the model would answer something else.
                raise Untranslatable(f"{at}.content", "has nothing that the provider of this model takes")
            content.merge_turn(out, "user", blocks)
        elif role == "assistant":
            content.merge_turn(out, "assistant", _marked(message, _assistant_blocks(message, at, way)))
        elif role == "tool":
            ident = idents.MESSAGES.fit(fields.needed_text(message, "tool_call_id", at))
            result: Json = {"type": "tool_result", "tool_use_id": ident, "content": _result_content(message, at, way)}
            if message.get("is_error") is True:
                result["is_error"] = True
            content.merge_turn(out, "user", _marked(message, [result]))
        elif role == "function":
            content.merge_turn(out, "user", user_blocks(message, at, way))
        else:
            raise Untranslatable(f"{at}.role", "is not known")
    if not out:
        raise Untranslatable("messages", "must have one of the user or the assistant that is not empty")
    return out, system


def _marked(holder: Json, blocks: list[Json]) -> list[Json]:
    """Set the cache mark of a message or a part, as clients of LiteLLM and OpenRouter write it, at its last block."""
    mark = holder.get("cache_control")
    if blocks and isinstance(mark, dict) and blocks[-1]["type"] not in ("thinking", "redacted_thinking"):
        blocks[-1]["cache_control"] = {name: value for name, value in mark.items() if name in ("type", "ttl")}
    return blocks


def user_blocks(message: Json, at: str, way: Way) -> list[Json]:
    """Return the blocks of a message's content without blank texts, which the provider refuses."""
    found = message.get("content")
    if found is None:
        return []
    if isinstance(found, str):
        return [{"type": "text", "text": found}] if found.strip() else []
    out = []
    for position, part in enumerate(fields.objects(message, "content", at)):
        block = _user_block(part, f"{at}.content[{position}]", way)
        if block is not None:
            out += _marked(part, [block])
    return out


def _user_block(part: Json, at: str, way: Way) -> Json | None:
    kind = fields.text(part, "type", at)
    if kind == "text":
        text = fields.needed_text(part, "text", at)
        return {"type": "text", "text": text} if text.strip() else None
    if kind == "image_url":
        holder = {"image_url": {"url": part["image_url"]}} if isinstance(part.get("image_url"), str) else part
        url = fields.needed_text(fields.obj(holder, "image_url", at) or {}, "url", f"{at}.image_url")
        data = content.data_url(url)
        if data is not None:
            return {"type": "image", "source": {"type": "base64", "media_type": data.media_type, "data": data.data}}
        return {"type": "image", "source": {"type": "url", "url": url}}
    if kind == "file":
        block = document(fields.obj(part, "file", at) or {}, f"{at}.file", way)
        if block is not None:
            return block
    if kind == "refusal":
        return {"type": "text", "text": fields.needed_text(part, "refusal", at)}
    if kind == ran_code.KIND:
        return {"type": "text", "text": ran_code.text(part)}
    if kind == "input_audio" and way.strict:
        audio = fields.obj(part, "input_audio", at) or {}
        sound = fields.needed_text(audio, "data", f"{at}.input_audio")
        return {"type": "audio", "format": fields.text(audio, "format", at) or "wav", "data": sound}
    way.dropped.append(at)
    return None


def document(file: Json, at: str, way: Way) -> Json | None:
    """Return the block of a file. None, or Untranslatable if strict, if it is not a data URL of an accepted type."""
    url = fields.text(file, "file_url", at)
    if url is not None and not way.strict:
        return {"type": "document", "source": {"type": "url", "url": url}}
    data = content.data_url(fields.text(file, "file_data", at) or "")
    if data is None or data.media_type not in way.documents:
        if way.strict:
            raise Untranslatable(at, "files must be data URLs of " + ", ".join(sorted(way.documents)))
        return None
    source: Json = {"type": "base64", "media_type": data.media_type, "data": data.data}
    if data.media_type == "text/plain":
        source = {"type": "text", "media_type": "text/plain", "data": content.decoded_text(data.data, at)}
    block: Json = {"type": "document", "source": source}
    if name := fields.text(file, "filename", at):
        block["title"] = name
    return block


def _result_content(message: Json, at: str, way: Way) -> Any:
    if isinstance(message.get("content"), str):
        return message["content"]
    return user_blocks(message, at, way)


def _assistant_blocks(message: Json, at: str, way: Way) -> list[Json]:
    """Return the blocks of an assistant's message. Thinking is included only with its signature, which is required."""
    out: list[Json] = []
    thinking, signature = message.get("reasoning_content"), message.get("reasoning_signature")
    if message.get("thinking_blocks"):
        given = fields.objects(message, "thinking_blocks", at)
        out += _thoughts(given)
        if len(out) < len(given):
            way.dropped.append(Past(f"{at}.thinking_blocks"))
    elif message.get("reasoning_details"):
        out += _thoughts(_detailed(fields.objects(message, "reasoning_details", at)))
        if not out:
            way.dropped.append(Past(f"{at}.reasoning_details"))
    elif isinstance(thinking, str) and isinstance(signature, str) and thinking and signature:
        out.append({"type": "thinking", "thinking": thinking, "signature": signature})
    elif thinking:
        way.dropped.append(Past(f"{at}.reasoning_content"))
    out += user_blocks(message, at, way)
    way.dropped.extend(Past(f"{at}.{name}") for name in ("annotations", "images") if message.get(name))
    refusal = fields.text(message, "refusal", at)
    if refusal:
        out.append({"type": "text", "text": refusal})
    calls = fields.objects(message, "tool_calls", at)
    for position, call in enumerate(calls):
        out.append(_tool_use(call, f"{at}.tool_calls[{position}]"))
    old = fields.obj(message, "function_call", at)
    if old is not None and not calls:
        # Without an id, call and result cannot be matched, so both are sent as text.
        out.append({"type": "text", "text": content.dump_text(old)})
    return out


def _detailed(details: list[Json]) -> list[Json]:
    """Return `reasoning_details`, in which OpenRouter's clients keep thoughts, as thinking blocks.

    Source: https://openrouter.ai/docs/use-cases/reasoning-tokens. Those of other vendors have another `format`.
    """
    out: list[Json] = []
    for one in details:
        if one.get("format") not in (None, "anthropic-claude-v1"):
            continue
        if one.get("type") == "reasoning.text":
            out.append({"type": "thinking", "thinking": one.get("text"), "signature": one.get("signature")})
        elif one.get("type") == "reasoning.encrypted":
            out.append({"type": "redacted_thinking", "data": one.get("data")})
    return out


def _thoughts(blocks: list[Json]) -> list[Json]:
    """Return the blocks of `thinking_blocks`, in which LiteLLM's clients keep thoughts, without the unsigned ones."""
    out: list[Json] = []
    for block in blocks:
        thinking, signature, data = (block.get(name) for name in ("thinking", "signature", "data"))
        if idents.is_sealed(data):
            continue
        if block.get("type") == "redacted_thinking" and isinstance(data, str) and data:
            out.append({"type": "redacted_thinking", "data": data})
        elif isinstance(thinking, str) and isinstance(signature, str) and signature:
            out.append({"type": "thinking", "thinking": thinking, "signature": signature})
    return out


def _tool_use(call: Json, at: str) -> Json:
    ident = idents.MESSAGES.fit(fields.needed_text(call, "id", at))
    name, arguments = custom_tools.called(call, at)
    return {"type": "tool_use", "id": ident, "name": name, "input": content.arguments_or_text(arguments)}


def _tools(body: Json, choice: ToolChoice | None, strict: StrictTools) -> list[Json]:
    """Return the tools. If only some of them are allowed and no single one is forced, the others are left out."""
    functions = functions_of(body, strict.dropped)
    if choice is not None and choice.names is not None and not _named(choice):
        functions = only(functions, choice)
    out = []
    for at, function in functions:
        tool: Json = {"name": fields.needed_text(function, "name", at)}
        if (description := fields.text(function, "description", at)) is not None:
            tool["description"] = description
        tool["input_schema"] = fields.obj(function, "parameters", at) or {"type": "object", "properties": {}}
        if fields.flag(function, "strict", at):
            made = strict.schema(tool["input_schema"], f"{at}.strict")
            if made is not None:
                tool |= {"input_schema": made, "strict": True}
        mark = function.get("cache_control")
        if isinstance(mark, dict):
            tool["cache_control"] = {name: value for name, value in mark.items() if name in ("type", "ttl")}
        out.append(tool)
    return out


def _named(choice: ToolChoice) -> bool:
    """Return whether exactly one tool is forced, which the provider can express."""
    return choice.kind == "required" and choice.names is not None and len(choice.names) == 1


def _choice(body: Json, asked: ToolChoice | None, tools: bool) -> Json | None:
    """Return the tool choice, with `disable_parallel_tool_use` if the request has `parallel_tool_calls`."""
    parallel = fields.flag(body, "parallel_tool_calls")
    choice: Json
    if asked is None:
        if parallel is None or not tools:
            return None
        choice = {"type": "auto"}
    elif _named(asked):
        choice = {"type": "tool", "name": (asked.names or ("",))[0]}
    else:
        choice = {"type": CHOICES[asked.kind]}
    if parallel is not None and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = not parallel
    return choice


def _think(body: Json, out: Json, dropped: list[str]) -> None:
    """Convert the reasoning effort to what the model takes: adaptive thinking at a level, or a budget.

    The provider refuses thinking with a forced tool, and sampling parameters with thinking
    (https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking).
    """
    effort = efforts.known(body.get("reasoning_effort"))
    budget = None if effort is None else efforts.BUDGETS[effort]
    own = efforts.own_budget(body)
    if own is not None:
        budget, effort = own, effort or efforts.level_of(own)
    forced = out.get("tool_choice", {}).get("type") in ("any", "tool")
    if efforts.is_adaptive(out["model"]):
        dropped += [name for name in ("temperature", "top_p", "top_k") if out.pop(name, 1) != 1]
        if effort is not None:
            efforts.adapt(out, effort, thinking=not forced)
        return
    if effort is None or budget is None:
        return
    if forced or not efforts.thinks(out["model"]) or in_tool_loop(out["messages"]):
        dropped.append("reasoning_effort" if own is None else "thinking")
        return
    set_budget(out, budget)
    if out.get("temperature", 1) != 1:
        del out["temperature"]
        dropped.append("temperature")
    if out.pop("top_k", None) is not None:
        dropped.append("top_k")
    top_p = fields.number(body, "top_p")
    if top_p is not None and top_p < 0.95:
        del out["top_p"]
        dropped.append("top_p")


def set_budget(out: Json, budget: int) -> None:
    """Set a thinking budget, and the limit of output tokens so that it is above it."""
    out["thinking"] = {"type": "enabled", "budget_tokens": budget}
    out["max_tokens"] = efforts.room_for(budget, out["max_tokens"])


def in_tool_loop(messages: list[Json]) -> bool:
    """Return whether the last message has tool results, and the client has not returned the reasoning of their calls.

    The provider refuses thinking in this case: the assistant's message before the results must begin with a thinking
    block.
    """
    if len(messages) < 2 or not any(block["type"] == "tool_result" for block in messages[-1]["content"]):
        return False
    said = messages[-2]["content"]
    return messages[-2]["role"] == "assistant" and said[0]["type"] not in ("thinking", "redacted_thinking")


def _answer_schema(body: Json) -> Json | None:
    form = fields.obj(body, "response_format") or {}
    if fields.text(form, "type", "response_format") != "json_schema":
        return None
    named = fields.obj(form, "json_schema", "response_format") or {}
    return fields.obj(named, "schema", SCHEMA.rpartition(".")[0])


def _output_format(body: Json, way: Way) -> Json | None:
    """Return the format of answers. Any JSON object is none that the provider has: its objects have fixed members."""
    form = fields.obj(body, "response_format") or {}
    kind = fields.text(form, "type", "response_format")
    if kind == "json_object":
        way.dropped.append("response_format")
    if kind != "json_schema":
        return None
    named = fields.obj(form, "json_schema", "response_format") or {}
    schema = _answer_schema(body)
    if schema is None:
        raise Untranslatable(SCHEMA, "is missing")
    if not way.strict:
        schema = described(schema, fields.text(named, "description", SCHEMA.rpartition(".")[0]))
    out: Json = {"type": "json_schema", "schema": closed(schema, SCHEMA, way.dropped)}
    if way.strict:
        fields.copy(named, out, {"name": "name", "description": "description"})
    return out
