"""Translates Responses requests to chat completions (Gemini's compatible endpoint, custom providers).

Source: https://platform.openai.com/docs/api-reference/responses/create
and https://platform.openai.com/docs/api-reference/chat/create.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from headgate.dialect.llm import content, custom_tools, efforts, fields, idents, ran_code, vendor_tools
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable
from headgate.dialect.llm.sayable import Past
from headgate.dialect.llm.translate.messages_to_completions import SHOWN
from headgate.dialect.llm.translate.tool_choice import CALLED

# Fields that need stored conversations, which only OpenAI has. Requests that set them are refused.
REFUSED = {
    "previous_response_id": "earlier responses are not kept here: send the whole conversation",
    "conversation": "conversations are not kept here: send the whole conversation",
    "background": "responses cannot run in the background here",
}
DROPS = (
    "`store`, `truncation`, `prompt`, `max_tool_calls`, `include` except for log probabilities, and every other "
    "field that is not listed above",
    "tools other than functions (`file_search`, `mcp`, ...) and their items. Exceptions: `web_search` where the "
    "vendor has it, and `code_interpreter` at Messages and Gemini (text in earlier turns). Where the vendor has no "
    "custom tools, these become functions with one string, `input`; a grammar becomes part of the description",
    "reasoning items of earlier turns, except for those of Claude that go back to Claude",
    "`reasoning.summary`",
    "refused with 400: `previous_response_id`, `conversation`, `background`, item references, files and images by "
    "id, files by URL (except for Messages)",
)


# Value of `include` for the log probabilities of tokens.
ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"


class ItemContext(NamedTuple):
    """The context of one translation: the dropped fields, ids of calls, and whether these need signatures."""

    dropped: list[str]
    ids: idents.Idents
    signed: bool
    # On the way to a format whose results of tools have pictures and files, or which takes files by URL.
    rich: bool
    # The provider takes custom tools, or the way there goes on.
    customs: bool


def request(body: Json, options: Options) -> TranslatedRequest:
    """Return the provider's request. Raises Untranslatable."""
    dropped: list[str] = []
    for name, why in REFUSED.items():
        if body.get(name):
            raise Untranslatable(name, why)
    model = content.model_of(body, options.model)
    ids = idents.WHOLE if options.whole_ids else idents.of_completions(options.vendor)
    signed = options.vendor == idents.GEMINI and not options.whole_ids and efforts.is_third(model)
    customs = options.whole_ids or options.vendor in custom_tools.VENDORS
    way = ItemContext(dropped, ids, signed, options.whole_ids, customs)
    out: Json = {"model": model, "messages": _messages(body, way)}
    limit = fields.integer(body, "max_output_tokens")
    if limit is not None:
        out["max_completion_tokens"] = limit
    same = ("temperature", "top_p", "metadata", "user", "service_tier", "safety_identifier", "prompt_cache_key")
    fields.copy(body, out, {name: name for name in same})
    tools = _tools(body, way)
    if not options.whole_ids:
        tools = vendor_tools.kept_for_chat(tools, out, options.vendor, dropped)
    if tools:
        out["tools"] = tools
        fields.copy(body, out, {"parallel_tool_calls": "parallel_tool_calls"})
        choice = _choice(body, customs)
        if choice is not None:
            out["tool_choice"] = choice
    effort = fields.text(fields.obj(body, "reasoning") or {}, "effort", "reasoning")
    if effort is not None:
        out["reasoning_effort"] = effort
    if (verbosity := fields.text(fields.obj(body, "text") or {}, "verbosity", "text")) is not None:
        out["verbosity"] = verbosity
    _include(body, out, dropped)
    form = _format(body)
    if form is not None:
        out["response_format"] = form
    asked = content.asked_of_completions(body, out, model, dropped)
    asked.seals = ENCRYPTED in fields.texts(body, "include")
    asked.echo = echo(body, asked.requested)
    return asked


def echo(body: Json, model: str) -> Json:
    """Return the fields of a request that its response object repeats, with OpenAI's defaults."""
    defaults: Json = {
        "instructions": None, "max_output_tokens": None, "metadata": {}, "parallel_tool_calls": True,
        "previous_response_id": None, "reasoning": {"effort": None, "summary": None}, "store": False,
        "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "truncation": "disabled", "user": None,
    }  # fmt: skip
    given = {name: body[name] for name in defaults if body.get(name) is not None}
    return {"model": model, "background": False, **defaults, **given, "store": False}


def _messages(body: Json, way: ItemContext) -> list[Json]:
    out: list[Json] = []
    instructions = body.get("instructions")
    if isinstance(instructions, str) and instructions:
        out.append({"role": "developer", "content": instructions})
    elif isinstance(instructions, list):
        _add_items(out, fields.objects(body, "instructions"), "instructions", way)
    given = body.get("input")
    if isinstance(given, str):
        out.append({"role": "user", "content": given})
    else:
        _add_items(out, fields.objects(body, "input"), "input", way)
    if not out:
        raise Untranslatable("input", "must not be empty")
    return out


def _add_items(out: list[Json], items: list[Json], where: str, way: ItemContext) -> None:
    # What results show, where they can only be text: it follows in a message of the user behind the last of them.
    shown: list[Json] = []
    for position, item in enumerate(items):
        at = f"{where}[{position}]"
        kind = fields.text(item, "type", at) or "message"
        if shown and not kind.endswith("_output"):
            out.append({"role": "user", "content": shown})
            shown = []
        if kind == "message":
            message = _message(item, at, way)
            if message is not None:
                out.append(message)
        elif kind in ("function_call", "custom_tool_call"):
            _add_call(out, item, at, way)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            call = way.ids.fit(fields.needed_text(item, "call_id", at))
            told, media = _output(item, at, way)
            out.append({"role": "tool", "tool_call_id": call, "content": told})
            shown += media
        elif kind == "reasoning" and way.rich and (block := _thought(item)) is not None:
            out.append({"role": "assistant", "content": None, "thinking_blocks": [block]})
        elif (ran := ran_code.of_item(item)) is not None:
            out.append({"role": "assistant", "content": [ran] if way.rich else ran_code.text(ran)})
        elif kind == "item_reference":
            raise Untranslatable(at, "earlier items are not kept here: send the whole conversation")
        else:
            # What a vendor thought, and what its own tools did.
            way.dropped.append(Past(at))
    if shown:
        out.append({"role": "user", "content": shown})


def _thought(item: Json) -> Json | None:
    """Return the thinking block that a reasoning item of this gateway's was; None for others."""
    encrypted = item.get("encrypted_content")
    own = idents.unwrapped(encrypted) if isinstance(encrypted, str) else None
    if own is None:
        return None
    signature, redacted = own
    if redacted:
        return {"type": "redacted_thinking", "data": signature}
    told = "".join(str(part.get("text") or "") for part in fields.objects(item, "summary"))
    return {"type": "thinking", "thinking": told, "signature": signature}


def _message(item: Json, at: str, way: ItemContext) -> Json | None:
    role = fields.needed_text(item, "role", at)
    if role not in ("user", "assistant", "system", "developer"):
        raise Untranslatable(f"{at}.role", "must be one of user, assistant, system, developer")
    if isinstance(item.get("content"), str):
        return {"role": role, "content": item["content"]}
    parts: list[Json] = []
    for index, part in enumerate(fields.objects(item, "content", at)):
        found = _part(part, f"{at}.content[{index}]", way)
        if found is not None:
            parts.append(found)
    if role != "user" and parts and all(part["type"] == "text" for part in parts):
        # Many vendors accept lists of parts only in messages of the user.
        return {"role": role, "content": "".join(part["text"] for part in parts)}
    return {"role": role, "content": parts} if parts else None


def _part(part: Json, at: str, way: ItemContext) -> Json | None:
    kind = fields.text(part, "type", at)
    if kind in ("input_text", "output_text", "text"):
        if part.get("annotations"):
            way.dropped.append(Past(f"{at}.annotations"))
        return {"type": "text", "text": fields.needed_text(part, "text", at)}
    if kind == "refusal":
        return {"type": "text", "text": fields.needed_text(part, "refusal", at)}
    if kind == "input_image":
        url = fields.text(part, "image_url", at)
        if url is None:
            raise Untranslatable(at, "images must be data or a URL")
        image: Json = {"url": url}
        fields.copy(part, image, {"detail": "detail"})
        return {"type": "image_url", "image_url": image}
    if kind == "input_file":
        data, url = fields.text(part, "file_data", at), fields.text(part, "file_url", at)
        if data is None and (url is None or not way.rich):
            raise Untranslatable(at, "files must be data")
        file: Json = {"file_url": url} if data is None else {"file_data": data}
        fields.copy(part, file, {"filename": "filename"})
        return {"type": "file", "file": file}
    if kind == "input_audio":
        return {"type": "input_audio", "input_audio": fields.obj(part, "input_audio", at) or {}}
    way.dropped.append(at)
    return None


def _add_call(out: list[Json], item: Json, at: str, way: ItemContext) -> None:
    """Add a tool call to the last message if it is the assistant's, otherwise to a new one."""
    name, ident = fields.needed_text(item, "name", at), fields.needed_text(item, "call_id", at)
    call: Json = {"id": way.ids.fit(ident)}
    if item.get("type") != "custom_tool_call":
        arguments = fields.text(item, "arguments", at) or "{}"
        call |= {"type": "function", "function": {"name": name, "arguments": arguments}}
    else:
        custom = {"name": name, "input": fields.text(item, "input", at) or ""}
        call |= {"type": "custom", "custom": custom}
        if not way.customs:
            name, arguments = custom_tools.called(call, at)
            call = {"id": call["id"], "type": "function", "function": {"name": name, "arguments": arguments}}
    if not out or out[-1]["role"] != "assistant":
        out.append({"role": "assistant", "content": None})
    calls = out[-1].setdefault("tool_calls", [])
    calls.append(call)
    if way.signed:
        idents.sign(call, ident, len(calls) == 1)


def _output(item: Json, at: str, way: ItemContext) -> tuple[Any, list[Json]]:
    """Return a tool result, and what it shows: messages of tools have only text (see _add_items())."""
    if isinstance(item.get("output"), str):
        return str(item["output"]), []
    given = enumerate(fields.objects(item, "output", at))
    parts = [made for index, part in given if (made := _part(part, f"{at}.output[{index}]", way)) is not None]
    shown = [part for part in parts if part["type"] != "text"]
    if way.rich and shown:
        return parts, []
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return "\n".join(texts) or (SHOWN if shown else ""), shown


def _tools(body: Json, way: ItemContext) -> list[Json]:
    out: list[Json] = []
    for position, tool in enumerate(fields.objects(body, "tools")):
        at = f"tools[{position}]"
        kind = fields.text(tool, "type", at)
        if kind == "custom":
            custom = custom_tools.of_responses(tool, at)
            out.append({"type": "custom", "custom": custom} if way.customs else
                       {"type": "function", "function": custom_tools.as_function(custom, at, way.dropped)})  # fmt: skip
            continue
        if kind != "function":
            ran = vendor_tools.of_responses(tool, at, way.dropped)
            if ran is None:
                way.dropped.append(at)
            else:
                out.append(ran)
            continue
        function: Json = {"name": fields.needed_text(tool, "name", at)}
        fields.copy(tool, function, {name: name for name in ("description", "parameters", "strict")})
        out.append({"type": "function", "function": function})
    return out


def _choice(body: Json, customs: bool) -> Any:
    choice = body.get("tool_choice")
    if choice is None or isinstance(choice, str):
        return choice
    found = fields.obj(body, "tool_choice") or {}
    kind = fields.text(found, "type", "tool_choice")
    if kind in CALLED:
        return _named(found, "tool_choice", customs)
    if kind == "allowed_tools":
        # Tools of other kinds are not called by the client.
        listed = [tool for tool in fields.objects(found, "tools", "tool_choice") if tool.get("type") in CALLED]
        allowed = [_named(tool, "tool_choice.tools", customs) for tool in listed]
        mode = fields.text(found, "mode", "tool_choice") or "auto"
        return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": allowed}}
    raise Untranslatable("tool_choice", f"{kind!r} cannot be carried")


def _named(tool: Json, at: str, customs: bool) -> Json:
    """Return a tool that a choice names."""
    kind = str(tool["type"]) if customs else "function"
    return {"type": kind, kind: {"name": fields.needed_text(tool, "name", at)}}


def _include(body: Json, out: Json, dropped: list[str]) -> None:
    """Ask for the log probabilities that a request wants; other additions belong to tools of the vendor."""
    fields.copy(body, out, {"top_logprobs": "top_logprobs"})
    wanted = set(fields.texts(body, "include"))
    if LOGPROBS in wanted or out.get("top_logprobs"):
        out["logprobs"] = True
    if wanted - {LOGPROBS, ENCRYPTED}:
        dropped.append("include")


def _format(body: Json) -> Json | None:
    form = fields.obj(fields.obj(body, "text") or {}, "format", "text")
    if form is None:
        return None
    kind = fields.text(form, "type", "text.format")
    if kind == "json_schema":
        named: Json = {"name": fields.text(form, "name", "text.format") or "structured_output"}
        fields.copy(form, named, {name: name for name in ("description", "schema", "strict")})
        return {"type": "json_schema", "json_schema": named}
    return {"type": "json_object"} if kind == "json_object" else None
