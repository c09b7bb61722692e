"""Translates Messages requests to Bedrock Converse. Requests of other formats are translated to Messages first.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
"""

from __future__ import annotations

from headgate.dialect.llm import content, efforts, fields, strict_tools
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable
from headgate.dialect.llm.translate import converse_blocks
from headgate_engine.llm.translate.readers import Garbage, load_json

DROPS = (
    "`metadata` (the request header `x-bedrock-metadata` is sent instead), `container`, `mcp_servers`, `service_tier` "
    "and every other field that is not listed above",
    "server tools and their results, citations of URLs in earlier turns",
    "`tool_choice` `none` after tool calls (before any call, the tools are left out instead); "
    "`disable_parallel_tool_use`",
    "`temperature`, `top_p`, `top_k` and a forced tool, if `thinking` has a fixed budget. For Claude 4.7 and later, "
    "the first three always; a budget becomes a level of effort",
    "`strict` of tools for Claude before 4.5, and for other models without it",
    "cache points after the fourth; `ttl` of `cache_control`",
    "`anthropic-beta` values that are not allowed",
    "refused with 400: images and documents by URL or id",
)
# Values of `anthropic-beta` that Bedrock accepts.
ALLOWED_BETAS = frozenset({
    "computer-use-2025-01-24", "token-efficient-tools-2025-02-19", "interleaved-thinking-2025-05-14",
    "output-128k-2025-02-19", "dev-full-thinking-2025-05-14", "context-1m-2025-08-07", "context-management-2025-06-27",
    "effort-2025-11-24", "tool-search-tool-2025-10-19", "tool-examples-2025-10-29",
})  # fmt: skip


def request(body: Json, options: Options) -> TranslatedRequest:
    """Return the provider's request. Model and streaming are in its path. Raises Untranslatable."""
    dropped: list[str] = []
    model = content.model_of(body, options.model)
    turns = converse_blocks.Turns(converse_blocks.Names(), dropped)
    system = turns.system_blocks(body, "system", "")
    listed = fields.objects(body, "messages")
    if not listed:
        raise Untranslatable("messages", "must not be empty")
    for position, message in enumerate(listed):
        at = f"messages[{position}]"
        if fields.needed_text(message, "role", at) == "system":
            system += turns.system_blocks(message, "content", at)
        else:
            turns.add(message, at)
    out: Json = {"messages": turns.messages}
    if system:
        out["system"] = system
    out["inferenceConfig"] = _inference(body, options)
    tools = _tools(body, turns, strict_tools.takes(model, strict_tools.BEDROCK))
    if tools is not None:
        out["toolConfig"] = tools
    extra = _extra(body, model, options)
    if extra.get("thinking", {}).get("type") == "enabled" and turns.in_tool_loop():
        # The vendor wants to see the thought in front of the last calls, and another vendor has made these.
        del extra["thinking"]
        dropped.append("thinking")
    adaptive = efforts.is_adaptive(model)
    if adaptive or extra.get("thinking", {}).get("type") == "enabled":
        _bow_to_thinking(out, extra, dropped, sampling_only=adaptive)
    if extra:
        out["additionalModelRequestFields"] = extra
    _surroundings(body, options, out)
    stream = bool(fields.flag(body, "stream"))
    path = f"/model/{content.model_segment(model)}/converse{'-stream' if stream else ''}"
    return TranslatedRequest(
        body=out, stream=stream, model=model, requested=str(body.get("model") or model), dropped=tuple(dropped),
        names=turns.names.back, path_suffix=path,
    )  # fmt: skip


def _inference(body: Json, options: Options) -> Json:
    limit = fields.integer(body, "max_tokens")
    out: Json = {"maxTokens": options.max_tokens_default if limit is None else limit}
    for name, other in (("temperature", "temperature"), ("top_p", "topP")):
        if (found := fields.number(body, name)) is not None:
            out[other] = found
    if (stop := fields.texts(body, "stop_sequences")):
        out["stopSequences"] = stop
    return out


def _tools(body: Json, turns: converse_blocks.Turns, strict: bool) -> Json | None:
    """Return `toolConfig`. It is required if earlier messages have tool calls, even if the request has no tools.

    `strict`: the model has strict tools.
    """
    specs: list[Json] = []
    for position, tool in enumerate(fields.objects(body, "tools")):
        at = f"tools[{position}]"
        if fields.text(tool, "type", at) not in (None, "custom"):
            turns.dropped.append(at)
            continue
        spec: Json = {"name": turns.names.made(fields.needed_text(tool, "name", at))}
        if description := fields.text(tool, "description", at):
            spec["description"] = description
        schema = fields.obj(tool, "input_schema", at) or {"type": "object", "properties": {}}
        spec["inputSchema"] = {"json": schema}
        if fields.flag(tool, "strict", at):
            if strict:
                spec["strict"] = True
            else:
                turns.dropped.append(f"{at}.strict")
        specs.append({"toolSpec": spec})
        turns.cache_point(specs, tool)
    if not specs:
        if not turns.used and not turns.results:
            return None
        for name in turns.used or {turns.names.made("tool"): None}:
            schema = {"type": "object", "properties": {}}
            specs.append({"toolSpec": {"name": name, "description": name, "inputSchema": {"json": schema}}})
        return {"tools": specs}
    out: Json = {"tools": specs}
    choice = fields.obj(body, "tool_choice") or {}
    kind = fields.text(choice, "type", "tool_choice")
    if kind == "none":
        if not turns.used and not turns.results:
            return None
        turns.dropped.append("tool_choice")
    if kind == "auto":
        out["toolChoice"] = {"auto": {}}
    elif kind == "any":
        out["toolChoice"] = {"any": {}}
    elif kind == "tool":
        out["toolChoice"] = {"tool": {"name": turns.names.made(fields.needed_text(choice, "name", "tool_choice"))}}
    elif kind not in (None, "none"):
        raise Untranslatable("tool_choice.type", "must be one of auto, any, tool, none")
    return out


def _extra(body: Json, model: str, options: Options) -> Json:
    """Return `additionalModelRequestFields`: fields for the model that Converse itself does not define."""
    out: Json = {}
    thinking = fields.obj(body, "thinking")
    if thinking is not None and thinking.get("type") != "disabled":
        out["thinking"] = thinking
    if (top_k := fields.integer(body, "top_k")) is not None:
        out["top_k"] = top_k
    config = fields.obj(body, "output_config") or {}
    if (effort := fields.text(config, "effort", "output_config")) is not None:
        out["output_config"] = {"effort": effort}
    if out.get("thinking", {}).get("type") == "enabled" and efforts.is_adaptive(model):
        budget = fields.integer(out["thinking"], "budget_tokens", "thinking") or efforts.LEAST_BUDGET
        out["thinking"] = {"type": "adaptive", "display": "summarized"}
        out.setdefault("output_config", {"effort": efforts.LEVELS[efforts.level_of(budget)]})
    allowed = ALLOWED_BETAS if options.allowed_betas is None else options.allowed_betas
    named = [*options.betas, *fields.texts(body, "anthropic_beta")]
    betas = [beta.strip() for value in named for beta in value.split(",")]
    if found := [beta for beta in dict.fromkeys(betas) if beta in allowed]:
        out["anthropic_beta"] = found
    return out


def _bow_to_thinking(out: Json, extra: Json, dropped: list[str], sampling_only: bool) -> None:
    """Drop sampling parameters and a forced tool, which the provider refuses with a thinking budget.

    Models without budgets refuse sampling parameters (`sampling_only`) with and without thinking.
    """
    for holder, name in ((out["inferenceConfig"], "temperature"), (out["inferenceConfig"], "topP"), (extra, "top_k")):
        if holder.pop(name, None) is not None:
            dropped.append("top_p" if name == "topP" else name)
    if sampling_only:
        return
    choice = out.get("toolConfig", {}).get("toolChoice")
    if choice is not None and "auto" not in choice:
        del out["toolConfig"]["toolChoice"]
        dropped.append("tool_choice")


def _surroundings(body: Json, options: Options, out: Json) -> None:
    """Set the output schema, the guardrail and the request metadata."""
    form = fields.obj(fields.obj(body, "output_config") or {}, "format", "output_config")
    form = fields.obj(body, "output_format") if form is None else form
    if form is not None:
        schema = fields.obj(form, "schema", "output_config.format")
        if schema is None:
            raise Untranslatable("output_config.format.schema", "is missing")
        told: Json = {"schema": content.dump_text(schema)}
        fields.copy(form, told, {"name": "name", "description": "description"})
        out["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": told}}}
    if options.guardrail is not None:
        identifier, version = options.guardrail
        out["guardrailConfig"] = {
            "guardrailIdentifier": identifier, "guardrailVersion": version, "trace": "enabled",
        }  # fmt: skip
    if options.metadata is not None:
        out["requestMetadata"] = metadata(options.metadata)


def metadata(text: str) -> dict[str, str]:
    """Return the flat JSON object in `x-bedrock-metadata` with its values as strings. Raises Untranslatable."""
    try:
        found = load_json(text)
    except Garbage:
        found = None
    if not isinstance(found, dict):
        raise Untranslatable("x-bedrock-metadata", "must be a JSON object")
    out: dict[str, str] = {}
    for name, value in found.items():
        if isinstance(value, str):
            out[name] = value
        elif isinstance(value, bool | int | float):
            out[name] = content.dump_text(value)
        else:
            raise Untranslatable("x-bedrock-metadata", "must hold strings, numbers and booleans")
    return out


