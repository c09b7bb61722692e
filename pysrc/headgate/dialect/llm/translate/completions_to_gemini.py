"""Translates chat completions requests to generateContent (Gemini API, and Gemini models on Vertex AI)."""

from __future__ import annotations

import mimetypes

from headgate.dialect.llm import content, custom_tools, efforts, fields, ran_code, sound, vendor_tools
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable
from headgate.dialect.llm.idents import THOUGHT, UNSIGNED
from headgate.dialect.llm.sayable import Past
from headgate.dialect.llm.schemas import described, normalise
from headgate.dialect.llm.translate.tool_choice import ToolChoice, choice_of, functions_of, only

DROPS = (
    "`parallel_tool_calls`, `user`, `logit_bias`, `metadata`, `store`, `service_tier` and every other "
    "field that is not listed above",
    "schema keywords outside OpenAPI 3.0 (`additionalProperties`, `not`, `if`, ...)",
    "`image_url.detail`, `name` of messages, `strict` of tools",
    "`reasoning_content` of earlier turns (signatures travel in the ids of tool calls)",
    "`web_search_options` in requests with functions; their `search_context_size` and `user_location`",
    "signatures of thoughts that did not lead to a tool call",
    "refused with 400: images and files by http(s) URL or by id",
)
VERTEX = "gcp.vertex_ai"
GENERATION = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "seed": "seed",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
}
LEVELS = {"minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
# The highest budget of all models that have budgets (Flash; https://ai.google.dev/gemini-api/docs/thinking).
MOST_BUDGET = 24_576
MODES = {"none": "NONE", "auto": "AUTO", "required": "ANY"}


def request(body: Json, options: Options) -> TranslatedRequest:
    """Return the provider's request. Model and streaming are in its path. Raises Untranslatable."""
    dropped: list[str] = []
    model = content.model_of(body, options.model)
    turns = _Turns(options.vendor == VERTEX, efforts.is_third(model), dropped)
    messages = fields.objects(body, "messages")
    for position, message in enumerate(messages):
        turns.add(message, f"messages[{position}]")
    out: Json = {"contents": turns.finished()}
    if turns.system:
        out["systemInstruction"] = {"parts": [{"text": "\n".join(turns.system)}]}
    choice = choice_of(body)
    tools = _tools(body, choice, dropped)
    if tools:
        out["tools"] = [{"functionDeclarations": tools}]
    if ran := _vendor_tools(body, bool(tools), dropped):
        out["tools"] = ran
    if choice is not None:
        out["toolConfig"] = {"functionCallingConfig": _choice(choice)}
    stream = bool(fields.flag(body, "stream"))
    config = _config(body, model)
    sound.to_gemini(body, config, dropped)
    if config:
        out["generationConfig"] = config
    fields.copy(body, out, {"safetySettings": "safetySettings", "labels": "labels"})
    cached = fields.text(body, "cachedContent") or fields.text(body, "cached_content")
    if cached:
        # The cached content contains these already, and the provider refuses requests that repeat them.
        for name in ("systemInstruction", "tools", "toolConfig"):
            out.pop(name, None)
        out["cachedContent"] = cached
    usage = bool(fields.flag(fields.obj(body, "stream_options") or {}, "include_usage", "stream_options"))
    return TranslatedRequest(
        body=out, stream=stream, model=model, requested=str(body.get("model") or model), dropped=tuple(dropped),
        include_usage=usage, path_suffix=":streamGenerateContent?alt=sse" if stream else ":generateContent",
    )  # fmt: skip


class _Turns:
    """Collects contents. Adjacent turns of one role are joined, tool results are in the order of their calls.

    `signed` means that the provider requires a signature at the first of parallel tool calls.
    """

    def __init__(self, vertex: bool, signed: bool, dropped: list[str]) -> None:
        self.vertex = vertex
        self.signed = signed
        self.dropped = dropped
        self.system: list[str] = []
        self.contents: list[Json] = []
        self.calls: dict[str, str] = {}
        self.order: list[str] = []
        self.results: dict[str, list[Json]] = {}

    def add(self, message: Json, at: str) -> None:
        role = fields.needed_text(message, "role", at)
        if role == "tool":
            self.result(message, at)
            return
        self.flush()
        if role in ("system", "developer"):
            texts = [part["text"] for part in self.parts(message, at) if part.get("text", "").strip()]
            self.system += texts
        elif role in ("user", "function"):
            self.turn("user", self.parts(message, at))
        elif role == "assistant":
            self.assistant(message, at)
        else:
            raise Untranslatable(f"{at}.role", "is not known")

    def turn(self, role: str, parts: list[Json]) -> None:
        if parts and self.contents and self.contents[-1]["role"] == role:
            self.contents[-1]["parts"] += parts
        elif parts:
            self.contents.append({"role": role, "parts": parts})

    def parts(self, message: Json, at: str) -> list[Json]:
        found = message.get("content")
        if found is None:
            return []
        if isinstance(found, str):
            return [{"text": found}]
        out: list[Json] = []
        for position, part in enumerate(fields.objects(message, "content", at)):
            if part.get("type") == ran_code.KIND:
                out += ran_code.for_gemini(part)
                continue
            made = _part(part, f"{at}.content[{position}]")
            if made is None:
                self.dropped.append(f"{at}.content[{position}]")
            else:
                out.append(made)
        return out

    def assistant(self, message: Json, at: str) -> None:
        parts = [part for part in self.parts(message, at) if part.get("text") != ""]
        if refusal := fields.text(message, "refusal", at):
            parts.append({"text": refusal})
        for position, image in enumerate(fields.objects(message, "images", at)):
            if (shown := _part({**image, "type": "image_url"}, f"{at}.images[{position}]")) is not None:
                parts.append(shown)
        lost = ("reasoning_content", "reasoning_details", "thinking_blocks", "annotations")
        self.dropped += [Past(f"{at}.{name}") for name in lost if message.get(name)]
        self.order = []
        for position, call in enumerate(fields.objects(message, "tool_calls", at)):
            here = f"{at}.tool_calls[{position}]"
            ident = fields.needed_text(call, "id", here)
            name, told = custom_tools.called(call, here)
            known, _, signature = ident.partition(THOUGHT)
            made: Json = {"name": name, "args": content.arguments_or_text(told)}
            if not self.vertex:
                made["id"] = known
            part: Json = {"functionCall": made}
            if signature or (self.signed and not self.order):
                part["thoughtSignature"] = signature or UNSIGNED
            parts.append(part)
            self.calls[ident] = name
            self.order.append(ident)
        old = fields.obj(message, "function_call", at)
        if old is not None and not self.order:
            # Without an id, call and result cannot be matched, so both are sent as text.
            parts.append({"text": content.dump_text(old)})
        self.turn("model", parts)

    def result(self, message: Json, at: str) -> None:
        ident = fields.needed_text(message, "tool_call_id", at)
        name = self.calls.get(ident) or fields.text(message, "name", at)
        if name is None:
            raise Untranslatable(f"{at}.tool_call_id", "belongs to no tool call in front of it")
        parts = self.parts(message, at)
        texts = [part["text"] for part in parts if "text" in part]
        # https://ai.google.dev/api/caching#FunctionResponse: errors stand in `error`.
        word = "error" if message.get("is_error") is True else "content"
        made: Json = {"name": name, "response": {word: "\n".join(texts)}}
        if not self.vertex:
            made["id"] = ident.partition(THOUGHT)[0]
        if ident not in self.order:
            self.order.append(ident)
        # Images and files follow the function responses, which can only contain JSON.
        self.results[ident] = [{"functionResponse": made}, *(part for part in parts if "text" not in part)]

    def flush(self) -> None:
        """Add the collected tool results as one turn."""
        if self.results:
            given = [self.results[ident] for ident in self.order if ident in self.results]
            self.turn("user", [found[0] for found in given] + [part for found in given for part in found[1:]])
            self.results = {}

    def finished(self) -> list[Json]:
        self.flush()
        # The provider requires at least one turn, and a text in every turn of the user.
        if not self.contents:
            return [{"role": "user", "parts": [{"text": " "}]}]
        for turn in self.contents:
            if turn["role"] == "user" and all("inlineData" in p or "fileData" in p for p in turn["parts"]):
                turn["parts"].append({"text": " "})
        return self.contents


def _part(part: Json, at: str) -> Json | None:
    kind = fields.text(part, "type", at)
    if kind == "text":
        return {"text": fields.needed_text(part, "text", at)}
    if kind == "refusal":
        return {"text": fields.needed_text(part, "refusal", at)}
    if kind == "image_url":
        holder = {"url": part["image_url"]} if isinstance(part.get("image_url"), str) else part.get("image_url")
        return _media(holder if isinstance(holder, dict) else {}, "url", f"{at}.image_url")
    if kind == "file":
        file = fields.obj(part, "file", at) or {}
        if fields.text(file, "file_data", at) is None:
            raise Untranslatable(f"{at}.file", "files must be data")
        return _media(file, "file_data", f"{at}.file")
    if kind == "input_audio":
        audio = fields.obj(part, "input_audio", at) or {}
        sound = fields.text(audio, "format", at) or "wav"
        return {"inlineData": {"mimeType": f"audio/{sound}", "data": fields.needed_text(audio, "data", at)}}
    return None


def _media(holder: Json, name: str, at: str) -> Json:
    """Return a data URL as `inlineData`, or a `gs://` URL as `fileData`. Raises Untranslatable for anything else."""
    url = fields.needed_text(holder, name, at)
    data = content.data_url(url)
    if data is not None:
        return {"inlineData": {"mimeType": data.media_type, "data": data.data}}
    if url.startswith("gs://"):
        hints = (fields.text(holder, hint, at) for hint in ("format", "mime_type", "content_type"))
        media_type = next((hint for hint in hints if hint), None) or mimetypes.guess_type(url)[0]
        if media_type is None:
            raise Untranslatable(at, "the type of the file cannot be told: give it as mime_type")
        return {"fileData": {"mimeType": media_type, "fileUri": url}}
    raise Untranslatable(at, "must be a data URL or begin with gs://: the provider fetches nothing else")


def _tools(body: Json, choice: ToolChoice | None, dropped: list[str]) -> list[Json]:
    """Return the function declarations.

    The provider accepts a list of allowed tools only if a call is required. Otherwise the other tools are left out.
    """
    functions = functions_of(body, dropped)
    if choice is not None and choice.kind != "required":
        functions = only(functions, choice)
    out = []
    for at, function in functions:
        made: Json = {"name": fields.needed_text(function, "name", at)}
        fields.copy(function, made, {"description": "description"})
        parameters = fields.obj(function, "parameters", at)
        if parameters is not None:
            schema = normalise(parameters, f"{at}.parameters")
            schema.setdefault("type", "object")
            if schema["type"] != "object" or schema.get("properties"):
                made["parameters"] = schema
        out.append(made)
    return out


def _vendor_tools(body: Json, functions: bool, dropped: list[str]) -> list[Json]:
    """Return the tools that the provider runs. Beside functions it has none, or only for clients that keep what these
    did from turn to turn (https://ai.google.dev/gemini-api/docs/tool-combination), which other formats cannot.
    """
    asked = vendor_tools.asked_for(body)
    if functions:
        dropped += [at for at, _ in asked]
        return []
    return [vendor_tools.to_gemini(tool, at, dropped) for at, tool in asked]


def _choice(choice: ToolChoice) -> Json:
    out: Json = {"mode": MODES[choice.kind]}
    if choice.kind == "required" and choice.names is not None:
        out["allowedFunctionNames"] = list(choice.names)
    return out


def _config(body: Json, model: str) -> Json:
    out: Json = {}
    fields.copy(body, out, GENERATION)
    limit = fields.integer(body, "max_completion_tokens")
    limit = fields.integer(body, "max_tokens") if limit is None else limit
    if limit is not None:
        out["maxOutputTokens"] = limit
    stop = fields.texts(body, "stop")
    if stop:
        out["stopSequences"] = stop
    form = fields.obj(body, "response_format") or {}
    kind = fields.text(form, "type", "response_format")
    if kind in ("json_schema", "json_object"):
        out["responseMimeType"] = "application/json"
    if kind == "json_schema":
        named = fields.obj(form, "json_schema", "response_format") or {}
        schema = fields.obj(named, "schema", "response_format.json_schema")
        if schema is None:
            raise Untranslatable("response_format.json_schema.schema", "is missing")
        schema = described(schema, fields.text(named, "description", "response_format.json_schema"))
        out["responseSchema"] = normalise(schema, "response_format.json_schema.schema")
    thinking = fields.obj(body, "thinking_config")
    effort, own = efforts.known(body.get("reasoning_effort")), efforts.own_budget(body)
    if thinking is None and own is not None:
        thinking = thinking_of(model, effort or efforts.level_of(own), own)
    elif thinking is None and effort is not None:
        thinking = thinking_of(model, effort, efforts.BUDGETS[effort])
    if thinking is not None:
        out["thinkingConfig"] = thinking
    return out


def thinking_of(model: str, effort: str, budget: int) -> Json:
    """Return `thinkingConfig`: the level of effort for models of generation 3, the budget in tokens for those
    before."""
    if not efforts.is_third(model):
        return {"includeThoughts": True, "thinkingBudget": min(budget, MOST_BUDGET)}
    # Pro models have no `minimal`.
    level = "low" if effort == "minimal" and "-pro" in model else LEVELS[effort]
    return {"includeThoughts": True, "thinkingLevel": level}
