"""Translates Messages requests to chat completions (OpenAI, Azure, and all compatible vendors).

Source: https://platform.claude.com/docs/en/api/messages and https://platform.openai.com/docs/api-reference/chat/create.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from headgate.dialect.llm import content, efforts, fields, idents, ran_code, strict_tools, vendor_tools
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable
from headgate.dialect.llm.sayable import Past
from headgate_engine.llm.translate.counts import UsageCounts
from headgate_engine.llm.translate.plain import chat_request, chat_turns, message_reply

DROPS = (
    "`top_k`, `container`, `mcp_servers`, `context_management` and every other field that is not listed above",
    "thinking blocks of earlier turns; the budget of `thinking` (models choose their own)",
    "server tools and their results. Exceptions: `web_search` at OpenAI's search models, OpenRouter and Perplexity, "
    "and code of earlier turns, which is sent as text",
    "`is_error` of tool results (their images and documents follow in a user message)",
    "citations (search results are sent as text)",
    "refused with 400: documents by URL or id, images by id",
    "`cache_control`, except for `gpt-*` from version 5.6",
    "`metadata` other than `user_id`",
    "`strict` of tools whose schema has open objects, optional properties, or keywords that OpenAI does not accept "
    "in strict schemas",
)
CHOICES = {"auto": "auto", "any": "required", "none": "none"}
# From this version on, chat completions with tools are refused unless the reasoning effort is `none`.
NO_EFFORT_WITH_TOOLS = (5, 3)
# What a tool has said that has shown something only.
SHOWN = "(shown below)"
# Names that OpenAI takes.
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
BREAKPOINT = {"mode": "explicit"}


class ChatContext(NamedTuple):
    """The context of one translation: whether cache breakpoints can be told, the dropped fields, ids of calls, and
    whether calls need signatures.
    """

    breakpoints: bool
    dropped: list[str]
    ids: idents.Idents
    signed: bool
    # On the way to a format whose results of tools have pictures and files.
    rich: bool


def plain_request(body: Json, model: str, vendor: str) -> TranslatedRequest | None:
    """Return what request() does for a request of texts and tool calls alone, None for any other."""
    ids = idents.of_completions(vendor)
    found = chat_request(body, model, -1 if ids.exact or vendor == idents.GEMINI else ids.longest)
    if found is None:
        return None
    return TranslatedRequest(body=found[0], stream=found[1], model=model, requested=str(body.get("model") or model))


def plain_reply(body: Json, asked: TranslatedRequest, usage: UsageCounts | None) -> Json | None:
    """Return the message for a reply of texts and tool calls alone, None for any other. `usage`: of the reply."""
    return message_reply(body, asked.model, asked.ident, asked.names, usage)


def request(body: Json, options: Options) -> TranslatedRequest:
    """Return the provider's request. Raises Untranslatable."""
    dropped: list[str] = []
    model = content.model_of(body, options.model)
    version = efforts.gpt_version(model)
    ids = idents.WHOLE if options.whole_ids else idents.of_completions(options.vendor)
    signed = options.vendor == idents.GEMINI and not options.whole_ids and efforts.is_third(model)
    way = ChatContext(version is not None and version >= efforts.CACHE_BREAKPOINTS, dropped, ids, signed,
                      options.whole_ids)  # fmt: skip
    out: Json = {"model": model, "messages": _messages(body, way)}
    limit = fields.integer(body, "max_tokens")
    if limit is not None:
        out["max_completion_tokens"] = limit
    stop = fields.texts(body, "stop_sequences")
    if stop:
        out["stop"] = stop
    metadata = fields.obj(body, "metadata") or {}
    if (user := fields.text(metadata, "user_id", "metadata")) is not None:
        out["user"] = user
    fields.copy(body, out, {"temperature": "temperature", "top_p": "top_p"})
    tools = _tools(body, dropped)
    if options.whole_ids:
        tools += [tool for _, tool in server_tools(body, dropped)]
    else:
        vendor_tools.to_chat(server_tools(body, dropped), out, options.vendor, dropped)
    if tools:
        out["tools"] = tools
        out.update(choice(body))
    _reason(body, out, version, bool(tools), dropped)
    form = output_format(body, options.vendor)
    if form is not None:
        out["response_format"] = {"type": "json_schema", "json_schema": form}
    return content.asked_of_completions(body, out, model, dropped)


def _messages(body: Json, way: ChatContext) -> list[Json]:
    out: list[Json] = []
    if body.get("system"):
        out.append({"role": "system", "content": _system(body, "system", "", way)})
    messages = fields.objects(body, "messages")
    if not messages:
        raise Untranslatable("messages", "must not be empty")
    longest = -1 if way.signed or way.ids.exact else way.ids.longest
    for position, message in enumerate(messages):
        plain = chat_turns(message, longest)
        if plain is not None:
            out += plain
            continue
        at = f"messages[{position}]"
        role = fields.needed_text(message, "role", at)
        if role == "user":
            out += _user(message, at, way)
        elif role == "assistant":
            out += _assistant(message, at, way)
        elif role == "system":
            out.append({"role": "system", "content": _system(message, "content", at, way)})
        else:
            raise Untranslatable(f"{at}.role", "must be user or assistant")
    return out


def _system(holder: Json, name: str, at: str, way: ChatContext) -> Any:
    found = holder.get(name)
    if isinstance(found, str):
        return found
    where = f"{at}.{name}" if at else name
    return [_text_part(block, where, way) for block in fields.objects(holder, name, at)]


def _text_part(block: Json, at: str, way: ChatContext) -> Json:
    return _marked({"type": "text", "text": fields.needed_text(block, "text", at)}, block, way)


def _marked(part: Json, block: Json, way: ChatContext) -> Json:
    if way.breakpoints and block.get("cache_control"):
        part["prompt_cache_breakpoint"] = dict(BREAKPOINT)
    return part


def blocks_of(message: Json, at: str) -> list[Json]:
    """Return the blocks of a message. A string gives one text block."""
    found = message.get("content")
    if isinstance(found, str):
        return [{"type": "text", "text": found}]
    return fields.objects(message, "content", at)


def _kinds(message: Json, at: str) -> Iterator[tuple[str, str | None, Json]]:
    """Yield the path, the type and the block itself for each block of a message."""
    for position, block in enumerate(blocks_of(message, at)):
        here = f"{at}.content[{position}]"
        yield here, fields.text(block, "type", here), block


def _user(message: Json, at: str, way: ChatContext) -> list[Json]:
    """Return the tool messages, which must directly follow their calls, and then the user's message."""
    if isinstance(message.get("content"), str):
        return [{"role": "user", "content": message["content"]}]
    out: list[Json] = []
    shown: list[Json] = []
    parts: list[Json] = []
    for here, kind, block in _kinds(message, at):
        if kind == "text":
            parts.append(_text_part(block, here, way))
        elif kind == "tool_result":
            result, media = _result(block, here, way)
            ident = way.ids.fit(fields.needed_text(block, "tool_use_id", here))
            told: Json = {"role": "tool", "tool_call_id": ident, "content": result}
            if way.rich and fields.flag(block, "is_error", here):
                told["is_error"] = True
            out.append(told)
            shown += media
        elif (part := _media(block, kind, here, way.dropped)) is not None:
            parts.append(part)
        else:
            way.dropped.append(here)
    if shown or parts:
        out.append({"role": "user", "content": [*shown, *parts]})
    return out


def uncited(block: Json, at: str, dropped: list[str]) -> None:
    """Note that answers are to cite this block, for formats that cannot ask for that."""
    if fields.flag(fields.obj(block, "citations", at) or {}, "enabled", at):
        dropped.append(f"{at}.citations")


def _media(block: Json, kind: str | None, at: str, dropped: list[str]) -> Json | None:
    """Return the part of an image, a document, a search result or a sound; None for any other block."""
    if kind in ("document", "search_result"):
        uncited(block, at, dropped)
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": image_url(block, at)}}
    if kind == "document":
        return document(block, at)
    if kind == "audio" and {"format", "data"} <= block.keys():
        # Only a step from Converse makes it.
        return {"type": "input_audio", "input_audio": {"format": block["format"], "data": block["data"]}}
    return {"type": "text", "text": found_text(block, at)} if kind == "search_result" else None


def found_text(block: Json, at: str) -> str:
    """Return a search result as text, for formats that have no other place for it."""
    texts = [fields.text(inner, "text", at) or "" for inner in fields.objects(block, "content", at)]
    return "\n".join([fields.text(block, "title", at) or "", fields.text(block, "source", at) or "", *texts])


def image_url(block: Json, at: str) -> str:
    """Return the image as a URL. Raises Untranslatable for an image by file id."""
    source = fields.obj(block, "source", at) or {}
    kind = fields.text(source, "type", f"{at}.source")
    if kind == "url":
        return fields.needed_text(source, "url", f"{at}.source")
    if kind == "base64":
        media_type = fields.needed_text(source, "media_type", f"{at}.source")
        data = fields.needed_text(source, "data", f"{at}.source")
        return content.as_data_url(media_type, data, f"{at}.source.media_type")
    raise Untranslatable(f"{at}.source", "images must be base64 or url")


def document(block: Json, at: str) -> Json:
    """Return the part for a document: a PDF as a file, text as text. Raises Untranslatable."""
    source = fields.obj(block, "source", at) or {}
    kind = fields.text(source, "type", f"{at}.source")
    if kind == "text":
        return {"type": "text", "text": fields.needed_text(source, "data", f"{at}.source")}
    if kind == "content":
        texts = [inner.get("text") for inner in blocks_of(source, f"{at}.source")]
        return {"type": "text", "text": "\n".join(text for text in texts if isinstance(text, str))}
    if kind == "base64":
        name = fields.text(block, "title", at) or "document.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": image_url(block, at)}}
    raise Untranslatable(f"{at}.source", "documents must be base64, text or content")


def _result(block: Json, at: str, way: ChatContext) -> tuple[Any, list[Json]]:
    """Return the content of a tool result, and what it shows: messages of tools have only text, so that the user's
    message behind them shows pictures and files.
    """
    found = block.get("content")
    marked = way.breakpoints and bool(block.get("cache_control"))
    if found is None:
        return "", []
    if isinstance(found, str) and not marked:
        return found, []
    parts: list[Json] = []
    shown: list[Json] = []
    for position, inner in enumerate(blocks_of(block, at)):
        here = f"{at}.content[{position}]"
        if inner.get("type") == "text":
            parts.append(_text_part(inner, here, way))
        elif (media := _media(inner, fields.text(inner, "type", here), here, way.dropped)) is not None:
            (parts if way.rich or media["type"] == "text" else shown).append(media)
        else:
            way.dropped.append(here)
    if parts:
        return [*parts[:-1], _marked(parts[-1], block, way)], shown
    return SHOWN if shown else "", shown


def _assistant(message: Json, at: str, way: ChatContext) -> list[Json]:
    if isinstance(message.get("content"), str):
        return [{"role": "assistant", "content": message["content"]}]
    parts: list[Json] = []
    calls: list[Json] = []
    runs: ran_code.Runs | None = None
    for here, kind, block in _kinds(message, at):
        if kind == "text":
            if block.get("citations"):
                way.dropped.append(Past(f"{here}.citations"))
            parts.append(_text_part(block, here, way))
        elif kind == "tool_use":
            calls.append(tool_call(block, here, way.ids))
            if way.signed:
                idents.sign(calls[-1], block["id"], len(calls) == 1)
        else:
            runs = ran_code.of_blocks(blocks_of(message, at)) if runs is None else runs
            ran = ran_code.of_block(block, runs)
            if ran is None:
                way.dropped.append(Past(here))
            else:
                parts += ran if way.rich else [{"type": "text", "text": ran_code.text(one)} for one in ran]
    if not parts and not calls:
        return []
    out: Json = {"role": "assistant", "content": parts or None}
    if calls:
        out["tool_calls"] = calls
    return [out]


def tool_call(block: Json, at: str, ids: idents.Idents) -> Json:
    """Return the tool call for a `tool_use` block of an earlier turn."""
    given = block.get("input")
    arguments = given if isinstance(given, str) else content.dump_text(given if given is not None else {})
    return {
        "id": ids.fit(fields.needed_text(block, "id", at)),
        "type": "function",
        "function": {"name": fields.needed_text(block, "name", at), "arguments": arguments},
    }


def custom_tools(body: Json, dropped: list[str]) -> list[Json]:
    """Return the tools that the client runs itself. Anthropic's server tools are dropped, except for those of
    server_tools().
    """
    out = []
    for position, tool in enumerate(fields.objects(body, "tools")):
        at = f"tools[{position}]"
        if fields.text(tool, "type", at) in (None, "custom"):
            out.append(tool)
        elif vendor_tools.of_messages(tool, at, []) is None:
            dropped.append(at)
    return out


def server_tools(body: Json, dropped: list[str]) -> list[tuple[str, Json]]:
    """Return (path, tool) pairs of the tools that other vendors run as well, as headgate.dialect.llm.vendor_tools."""
    out = []
    for position, tool in enumerate(fields.objects(body, "tools")):
        at = f"tools[{position}]"
        if (made := vendor_tools.of_messages(tool, at, dropped)) is not None:
            out.append((at, made))
    return out


def _tools(body: Json, dropped: list[str]) -> list[Json]:
    out = []
    for tool in custom_tools(body, dropped):
        function: Json = {"name": fields.needed_text(tool, "name", "tools")}
        if (description := fields.text(tool, "description", "tools")) is not None:
            function["description"] = description
        function["parameters"] = fields.obj(tool, "input_schema", "tools") or {"type": "object", "properties": {}}
        if (strict := strict_tools.asked(tool, dropped)) is not None:
            function["strict"] = strict
        out.append({"type": "function", "function": function})
    return out


def choice(body: Json) -> Json:
    """Return `tool_choice` and `parallel_tool_calls` of the provider's request. Raises Untranslatable."""
    found = fields.obj(body, "tool_choice")
    if found is None:
        return {}
    out: Json = {}
    kind = fields.text(found, "type", "tool_choice")
    if kind == "tool":
        named = {"name": fields.needed_text(found, "name", "tool_choice")}
        out["tool_choice"] = {"type": "function", "function": named}
    elif kind in CHOICES:
        out["tool_choice"] = CHOICES[kind]
    else:
        raise Untranslatable("tool_choice.type", "must be one of auto, any, tool, none")
    if (single := fields.flag(found, "disable_parallel_tool_use", "tool_choice")) is not None:
        out["parallel_tool_calls"] = not single
    return out


def effort(body: Json) -> str | None:
    """Return the effort of adaptive thinking, None if thinking is not adaptive."""
    thinking = fields.obj(body, "thinking") or {}
    if fields.text(thinking, "type", "thinking") != "adaptive":
        return None
    return fields.text(fields.obj(body, "output_config") or {}, "effort", "output_config") or "high"


def _reason(body: Json, out: Json, version: tuple[int, int] | None, tools: bool, dropped: list[str]) -> None:
    found = effort(body)
    if fields.text(fields.obj(body, "thinking") or {}, "type", "thinking") == "enabled":
        dropped.append("thinking")
    elif found is None and (fields.obj(body, "output_config") or {}).get("effort") is not None:
        dropped.append("output_config.effort")
    if tools and version is not None and version >= NO_EFFORT_WITH_TOOLS:
        out["reasoning_effort"] = "none"
        if found is not None:
            dropped.append("thinking")
    elif found is not None:
        # The provider has no effort above `xhigh`.
        out["reasoning_effort"] = "xhigh" if found == "max" else found


def _output_schema(body: Json) -> Json | None:
    """Return the JSON schema for the reply, None if the request has none. Raises Untranslatable."""
    form = fields.obj(fields.obj(body, "output_config") or {}, "format", "output_config")
    if form is None:
        form = fields.obj(body, "output_format")
    if form is None:
        return None
    if fields.text(form, "type", "output_config.format") != "json_schema":
        raise Untranslatable("output_config.format.type", "must be json_schema")
    schema = fields.obj(form, "schema", "output_config.format")
    if schema is None:
        raise Untranslatable("output_config.format.schema", "is missing")
    return schema


def output_format(body: Json, vendor: str) -> Json | None:
    """Return name, description and schema for the reply as OpenAI has them, None if the request has none.

    Clients of the format can rely on the schema. At OpenAI they can if it is strict, which not every schema can be.
    Name and description are those of Converse requests. Raises Untranslatable.
    """
    schema = _output_schema(body)
    if schema is None:
        return None
    form = fields.obj(fields.obj(body, "output_config") or {}, "format", "output_config") or {}
    name = fields.text(form, "name", "output_config.format")
    out: Json = {"name": name if name and NAME.fullmatch(name) else "structured_output"}
    if (description := fields.text(form, "description", "output_config.format")) is not None:
        out["description"] = description
    if vendor in vendor_tools.OPENAI and strict_tools.openai_takes(schema):
        out["strict"] = True
    return {**out, "schema": schema}
