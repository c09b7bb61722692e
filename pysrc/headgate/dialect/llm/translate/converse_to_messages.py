"""Translates Bedrock Converse requests to Messages, and as a step to all other formats.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html. Model and streaming stand in
the path of a request.
"""

from __future__ import annotations

from typing import Final

from headgate.dialect.llm import content, efforts, fields, history, strict_tools
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable
from headgate.dialect.llm.sayable import Past
from headgate.dialect.llm.schemas import described
from headgate.dialect.llm.translate import completions_to_messages
from headgate.dialect.llm.translate.converse_content import Blocks
from headgate_engine.llm.translate.readers import Garbage, load_json

DROPS = (
    "`guardrailConfig`, `performanceConfig`, `requestMetadata`, `additionalModelResponseFieldPaths` and every other "
    "field that is not listed above",
    "fields of `additionalModelRequestFields` other than `thinking`, `top_k`, `output_config`, `reasoning_effort`",
    "`strict` of tools for Claude before 4.5 and at Vertex AI",
    "tools that the vendor runs, except for web search where the vendor has it; their results in earlier turns",
    "`qualifiers` of `guardContent`",
    "refused with 400: references to S3, videos, stored prompts, and sound and documents that the vendor does not "
    "accept",
)
EXTRA: Final = "additionalModelRequestFields"
STRICT: Final = "toolConfig.tools[].toolSpec.strict"
SCHEMA: Final = "outputConfig.textFormat.structure.jsonSchema"
# Searches that Bedrock runs itself.
SEARCHES: Final = frozenset({"nova_grounding", "web_search"})
SEARCH: Final = {"type": "web_search_20250305", "name": "web_search"}
# Documents that Anthropic takes.
DOCUMENTS: Final = frozenset({"application/pdf"})


def between(body: Json, options: Options, dropped: list[str], sounds: bool = False) -> Json:
    """Return the Messages request that says the same, as a step on the way to any format. Raises Untranslatable.

    Thoughts may be unsigned in it, ids of tools and documents of any kind, and there may be no limit of tokens.
    """
    if body.get("promptVariables"):
        raise Untranslatable("promptVariables", "stored prompts are not known to the provider of this model")
    blocks = Blocks(dropped, sounds)
    out: Json = {"model": content.model_of(body, options.model), "messages": []}
    if (system := blocks.system(body)):
        out["system"] = system
    for position, message in enumerate(fields.objects(body, "messages")):
        made = blocks.turn(message, f"messages[{position}]")
        if made is not None:
            content.merge_turn(out["messages"], made["role"], made["content"])
    if not out["messages"]:
        raise Untranslatable("messages", "must not be empty")
    _infer(body, out)
    _tools(body, out, blocks)
    _answer_format(body, out)
    _extra(body, out, dropped)
    if options.stream:
        out["stream"] = True
    return out


def request(body: Json, options: Options) -> TranslatedRequest:
    """Return the Messages request as Anthropic takes it. Raises Untranslatable."""
    dropped: list[str] = []
    out = between(body, options, dropped)
    for position, message in enumerate(out["messages"]):
        for block in message["content"]:
            if block["type"] in history.THINKING and history.is_refused(block):
                dropped.append(Past(f"messages[{position}].content[]"))
            _check_documents(block, f"messages[{position}].content[]")
    out.setdefault("max_tokens", options.max_tokens_default)
    _name_nothing(out)
    _think(out, dropped)
    if not strict_tools.takes(out["model"], options.vendor):
        dropped += [STRICT for tool in out.get("tools", ()) if tool.pop("strict", None)]
    return asked(history.messages(out, options.vendor), out, options, dropped)


def _name_nothing(out: Json) -> None:
    """Say in the schema of the answer what is said beside it, where Anthropic has no place for that."""
    config = out.get("output_config") or {}
    form = fields.obj(config, "format", "output_config")
    if form is None or form.keys() <= {"type", "schema"}:
        return
    made = {name: value for name, value in form.items() if name not in ("name", "description")}
    if isinstance(made.get("schema"), dict):
        made["schema"] = described(made["schema"], fields.text(form, "description", SCHEMA))
    out["output_config"] = {**config, "format": made}


def asked(made: Json, out: Json, options: Options, dropped: list[str]) -> TranslatedRequest:
    """Return the request with the state that its reply needs."""
    return TranslatedRequest(
        body=made, stream=options.stream, model=out["model"], requested=out["model"], dropped=tuple(dropped)
    )


def _check_documents(block: Json, at: str) -> None:
    if block["type"] == "tool_result":
        for inner in block["content"]:
            _check_documents(inner, f"{at}.toolResult.content[]")
    source = block.get("source")
    if block["type"] != "document" or not isinstance(source, dict) or source["type"] != "base64":
        return
    if source["media_type"] not in DOCUMENTS:
        raise Untranslatable(f"{at}.document", "must be PDF or text: the provider of this model takes no other")


def _infer(body: Json, out: Json) -> None:
    config = fields.obj(body, "inferenceConfig") or {}
    if (limit := fields.integer(config, "maxTokens", "inferenceConfig")) is not None:
        out["max_tokens"] = limit
    for name, there in (("temperature", "temperature"), ("topP", "top_p")):
        if (value := fields.number(config, name, "inferenceConfig")) is not None:
            out[there] = value
    if (stop := fields.texts(config, "stopSequences", "inferenceConfig")):
        out["stop_sequences"] = stop


def _tools(body: Json, out: Json, blocks: Blocks) -> None:
    config = fields.obj(body, "toolConfig") or {}
    tools: list[Json] = []
    for position, one in enumerate(fields.objects(config, "tools", "toolConfig")):
        at = f"toolConfig.tools[{position}]"
        if "cachePoint" in one:
            blocks.mark(tools, one, at)
        elif (spec := fields.obj(one, "toolSpec", at)) is not None:
            tools.append(_tool(spec, f"{at}.toolSpec"))
        elif fields.text(fields.obj(one, "systemTool", at) or {}, "name", f"{at}.systemTool") in SEARCHES:
            tools.append(dict(SEARCH))
        else:
            blocks.dropped.append(at)
    if not tools:
        return
    out["tools"] = tools
    choice = fields.obj(config, "toolChoice", "toolConfig") or {}
    at = "toolConfig.toolChoice"
    if (named := fields.obj(choice, "tool", at)) is not None:
        out["tool_choice"] = {"type": "tool", "name": fields.needed_text(named, "name", f"{at}.tool")}
    elif "any" in choice or "auto" in choice:
        out["tool_choice"] = {"type": "any" if "any" in choice else "auto"}
    elif choice:
        raise Untranslatable(at, "must be one of auto, any, tool")


def _tool(spec: Json, at: str) -> Json:
    tool: Json = {"name": fields.needed_text(spec, "name", at)}
    fields.copy(spec, tool, {"description": "description"})
    schema = fields.obj(fields.obj(spec, "inputSchema", at) or {}, "json", f"{at}.inputSchema")
    tool["input_schema"] = schema or {"type": "object", "properties": {}}
    if (strict := fields.flag(spec, "strict", at)) is not None:
        tool["strict"] = strict
    return tool


def _answer_format(body: Json, out: Json) -> None:
    """Set the schema and the effort of the answer."""
    config = fields.obj(body, "outputConfig") or {}
    told: Json = {}
    if (effort := fields.text(config, "effort", "outputConfig")) is not None:
        told["effort"] = effort
    form = fields.obj(config, "textFormat", "outputConfig")
    if form is not None:
        structure = fields.obj(form, "structure", "outputConfig.textFormat") or {}
        named = fields.obj(structure, "jsonSchema", "outputConfig.textFormat.structure") or {}
        try:
            schema = load_json(fields.needed_text(named, "schema", SCHEMA))
        except Garbage:
            schema = None
        if not isinstance(schema, dict):
            raise Untranslatable(f"{SCHEMA}.schema", "must be the JSON text of an object")
        told["format"] = {"type": "json_schema", "schema": schema}
        fields.copy(named, told["format"], {"name": "name", "description": "description"})
    if told:
        out["output_config"] = told


def _extra(body: Json, out: Json, dropped: list[str]) -> None:
    """Set what clients ask of models beside Converse: Claude's members, and OpenAI's effort."""
    extra = fields.obj(body, EXTRA) or {}
    for name, value in extra.items():
        if value is None:
            continue
        if name == "thinking":
            out["thinking"] = fields.obj(extra, name, EXTRA)
        elif name == "top_k":
            out["top_k"] = fields.integer(extra, name, EXTRA)
        elif name == "reasoning_effort":
            if (effort := efforts.known(value)) is not None:
                out["thinking"] = {"type": "adaptive"}
                out.setdefault("output_config", {}).setdefault("effort", efforts.LEVELS[effort])
        elif name == "output_config":
            given = fields.obj(extra, name, EXTRA) or {}
            fields.text(given, "effort", f"{EXTRA}.{name}")
            if given:
                out["output_config"] = {**given, **out.get("output_config", {})}
        else:
            dropped.append(f"{EXTRA}.{name}")


def _think(out: Json, dropped: list[str]) -> None:
    """Have the model think in the way that it knows: adaptive thinking at a level, or a budget."""
    thinking = fields.obj(out, "thinking", EXTRA) or {}
    kind = fields.text(thinking, "type", f"{EXTRA}.thinking")
    if efforts.is_adaptive(out["model"]):
        dropped += [_NAMES[name] for name in _NAMES if out.pop(name, None) is not None]
        if kind == "enabled":
            budget = fields.integer(thinking, "budget_tokens", f"{EXTRA}.thinking") or efforts.LEAST_BUDGET
            efforts.adapt(out, efforts.level_of(budget))
        return
    if kind not in ("enabled", "adaptive"):
        return
    budget = efforts.own_budget({"thinking": thinking}) or efforts.LEAST_BUDGET
    if kind == "adaptive":
        budget = efforts.BUDGETS.get((out.get("output_config") or {}).pop("effort", None) or "high", budget)
        if not out.get("output_config", True):
            del out["output_config"]
    forced = out.get("tool_choice", {}).get("type") in ("any", "tool")
    if forced or not efforts.thinks(out["model"]) or completions_to_messages.in_tool_loop(out["messages"]):
        del out["thinking"]
        dropped.append(f"{EXTRA}.thinking")
        return
    completions_to_messages.set_budget(out, budget)
    dropped += [_NAMES[name] for name in ("temperature", "top_k") if out.pop(name, 1) != 1]
    if out.get("top_p", 1) < 0.95:
        del out["top_p"]
        dropped.append(_NAMES["top_p"])


_NAMES: Final = {
    "temperature": "inferenceConfig.temperature", "top_p": "inferenceConfig.topP", "top_k": f"{EXTRA}.top_k",
}  # fmt: skip
