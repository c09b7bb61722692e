"""Translates generateContent requests to chat completions, and as a step to all other formats.

Source: https://ai.google.dev/api/generate-content. Google takes names of members in camelCase and in snake_case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from headgate.dialect.llm import (
    content,
    efforts,
    fields,
    history,
    idents,
    ran_code,
    reasoning_details,
    sound,
    vendor_tools,
)
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable
from headgate.dialect.llm.sayable import Past
from headgate.dialect.llm.schemas import lower_types
from headgate.document.lazy_dataclass import dataclass

DROPS = (
    "`safetySettings`, `labels`, and every other field that is not listed above",
    "tools other than functions. Exceptions: `googleSearch` and `codeExecution` where the vendor has them, and code "
    "of earlier turns, which is sent as text",
    "`responseModalities` and `speechConfig`, except for chat completions; `mediaResolution`",
    "thoughts of earlier turns without a signature from this gateway",
    "refused with 400: `cachedContent`, files by URI other than images, file types that the provider's format has "
    "no field for",
)
MODES = {"AUTO": "auto", "VALIDATED": "auto", "ANY": "required", "NONE": "none", "MODE_UNSPECIFIED": "auto"}
LEVELS = {"MINIMAL": "minimal", "LOW": "low", "MEDIUM": "medium", "HIGH": "high"}
# Formats of audio by subtype of their media type.
AUDIO = {"wav": "wav", "x-wav": "wav", "wave": "wav", "mp3": "mp3", "mpeg": "mp3"}
GENERATION = {
    "temperature": "temperature", "topP": "top_p", "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty", "seed": "seed", "topK": "top_k",
    "responseLogprobs": "logprobs", "logprobs": "top_logprobs",
}  # fmt: skip
# Members of a response of a function that hold its only text.
RESULTS = ("output", "result", "content", "error")


def camel(name: str) -> str:
    """Return a name in camelCase."""
    if "_" not in name.strip("_"):
        return name
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def plain(holder: Json) -> Json:
    """Return an object with its names in camelCase."""
    if not any("_" in name for name in holder):
        return holder
    return {camel(name): value for name, value in holder.items()}


def _plain_within(value: Any) -> Any:
    """Return a value with the names of all of its objects in camelCase."""
    return {camel(name): _plain_within(one) for name, one in value.items()} if isinstance(value, dict) else value


def plainly(body: Json) -> Json:
    """Return a request with the names that the table knows in camelCase."""
    out = plain(body)
    config = out.get("generationConfig")
    return {**out, "generationConfig": plain(config)} if isinstance(config, dict) else out


def request(body: Json, options: Options) -> TranslatedRequest:
    """Return the chat completions request. Model and streaming come in the options. Raises Untranslatable."""
    body = plainly(body)
    if body.get("cachedContent"):
        raise Untranslatable("cachedContent", "is not known to the provider of this model")
    model = content.model_of(body, options.model)
    dropped: list[str] = []
    routed = model if options.vendor == reasoning_details.OPENROUTER and not options.whole_ids else ""
    turns = _Contents(dropped, idents.WHOLE if options.whole_ids else idents.of_completions(options.vendor),
                      rich=options.whole_ids, routed=routed)  # fmt: skip
    config = fields.obj(body, "generationConfig") or {}
    out: Json = {"model": model, "messages": turns.messages}
    turns.system(body)
    for position, turn in enumerate(_listed(body, "contents")):
        turns.add(turn, f"contents[{position}]")
    if not any(message["role"] != "system" for message in turns.messages):
        raise Untranslatable("contents", "must not be empty")
    _configure(config, out, options)
    thinking = plain(fields.obj(config, "thinkingConfig", "generationConfig") or {})
    if thinking.get("includeThoughts") is True and out.keys().isdisjoint(("reasoning_effort", "thinking")):
        # How much is left to the model, and only Google's think unasked.
        dropped.append("generationConfig.thinkingConfig")
    if not options.whole_ids:
        sound.of_gemini(_plain_within(config), out, options.vendor not in history.STRICT, dropped)
    tools = _tools(body, dropped)
    if tools:
        out["tools"] = tools
        if (choice := _choice(body)) is not None:
            out["tool_choice"] = choice
    if options.stream:
        out["stream"] = True
        out["stream_options"] = {"include_usage": True}
    return TranslatedRequest(
        body=out, stream=options.stream, model=model, requested=model, dropped=tuple(dropped), include_usage=True
    )


def _listed(holder: Json, name: str, at: str = "") -> list[Json]:
    """Return an array of objects; one alone counts as an array of one."""
    found = holder.get(name)
    if isinstance(found, dict):
        return [found]
    if isinstance(found, str):
        return [{"parts": [{"text": found}]}] if name != "parts" else [{"text": found}]
    return fields.objects(holder, name, at)


@dataclass(slots=True)
class _Contents:
    """Collects messages.

    `rich`: on the way to a format whose results of tools have pictures and files. `waiting`: (name, id) of calls that
    have no result yet, in order. `shown`: what results of this turn show, where they can only be text. `signatures`: of
    thoughts that led to the calls of this turn, by their ids. `routed`: OpenRouter's model, "" for other vendors.
    """

    dropped: list[str]
    ids: idents.Idents
    messages: list[Json] = field(default_factory=list)
    rich: bool = False
    waiting: list[tuple[str, str]] = field(default_factory=list)
    shown: list[Json] = field(default_factory=list)
    calls: int = 0
    signatures: list[tuple[str, str]] = field(default_factory=list)
    routed: str = ""

    def system(self, body: Json) -> None:
        for turn in _listed(body, "systemInstruction"):
            found = [fields.text(part, "text", at) for at, part in self.parts(turn, "systemInstruction")]
            texts = [text for text in found if text]
            if texts:
                self.messages.append({"role": "system", "content": "\n".join(texts)})

    def parts(self, turn: Json, at: str) -> Iterator[tuple[str, Json]]:
        for position, part in enumerate(_listed(turn, "parts", at)):
            yield f"{at}.parts[{position}]", plain(part)

    def add(self, turn: Json, at: str) -> None:
        role = fields.text(turn, "role", at) or "user"
        if role == "model":
            self.model(turn, at)
        elif role in ("user", "function"):
            self.user(turn, at)
        else:
            raise Untranslatable(f"{at}.role", "must be user or model")

    def user(self, turn: Json, at: str) -> None:
        """Add the results of functions, which must follow their calls, and then what the user says."""
        said: list[Json] = []
        for here, part in self.parts(turn, at):
            if isinstance(part.get("functionResponse"), dict):
                self.messages.append(self.result(plain(part["functionResponse"]), f"{here}.functionResponse"))
            elif (made := self.said(part, here)) is not None:
                said.append(made)
        said = self.shown + said
        self.shown = []
        if len(said) == 1 and said[0]["type"] == "text":
            self.messages.append({"role": "user", "content": said[0]["text"]})
        elif said:
            self.messages.append({"role": "user", "content": said})

    def said(self, part: Json, at: str) -> Json | None:
        text = fields.text(part, "text", at)
        if text is not None:
            return {"type": "text", "text": text} if text else None
        if (inline := fields.obj(part, "inlineData", at)) is not None:
            return _inline(plain(inline), f"{at}.inlineData")
        if (file := fields.obj(part, "fileData", at)) is not None:
            return _file(plain(file), f"{at}.fileData")
        self.dropped.append(at)
        return None

    def model(self, turn: Json, at: str) -> None:
        texts: list[str] = []
        thoughts: list[Json] = []
        calls: list[Json] = []
        thinking = ""
        self.signatures.clear()
        parts = list(self.parts(turn, at))
        for index, (here, part) in enumerate(parts):
            text = fields.text(part, "text", here)
            signature = fields.text(part, "thoughtSignature", here) or ""
            if part.get("thought") is True:
                own = idents.unwrapped(signature)
                if own is None:
                    thinking += text or ""
                elif own[1]:
                    thoughts.append({"type": "redacted_thinking", "data": own[0]})
                else:
                    thoughts.append({"type": "thinking", "thinking": thinking + (text or ""), "signature": own[0]})
                    thinking = ""
            elif text is not None:
                texts.append(text)
            elif (call := fields.obj(part, "functionCall", here)) is not None:
                calls.append(self.call(plain(call), f"{here}.functionCall", signature))
            elif (code := fields.obj(part, "executableCode", here)) is not None:
                following = parts[index + 1][1] if index + 1 < len(parts) else {}
                ran = ran_code.text(ran_code.of_parts(code, fields.obj(following, "codeExecutionResult", here)))
                # It stands on lines of its own.
                texts.append(f"\n{ran}" if texts and not texts[-1].endswith("\n") else ran)
            elif index and "codeExecutionResult" in part and "executableCode" in parts[index - 1][1]:
                continue
            else:
                self.dropped.append(Past(here))
        if thinking:
            self.dropped.append(Past(f"{at}.parts[]"))
        said = "".join(texts)
        if not said and not calls and not thoughts:
            return
        message: Json = {"role": "assistant", "content": said or None}
        details = reasoning_details.of_turn(self.routed, thoughts, self.signatures) if self.routed else []
        if details:
            message["reasoning_details"] = details
            if len(reasoning_details.of_turn(self.routed, thoughts, [])) < len(thoughts):
                self.dropped.append(Past(f"{at}.parts[]"))
        elif thoughts:
            message["thinking_blocks"] = thoughts
        if calls:
            message["tool_calls"] = calls
        self.messages.append(message)

    def call(self, call: Json, at: str, signature: str) -> Json:
        """Return a tool call; one without an id gets one by its number."""
        name = fields.needed_text(call, "name", at)
        ident = fields.text(call, "id", at) or f"call_{self.calls}_{name}"
        self.calls += 1
        self.waiting.append((name, ident))
        if signature:
            self.signatures.append((self.ids.fit(ident), signature))
            ident = f"{ident}{idents.THOUGHT}{signature}"
        arguments = content.dump_text(fields.obj(call, "args", at) or {})
        return {"id": self.ids.fit(ident), "type": "function", "function": {"name": name, "arguments": arguments}}

    def result(self, given: Json, at: str) -> Json:
        """Return the message of a function's result: for the call with its id, or the first one with its name."""
        name = fields.needed_text(given, "name", at)
        ident = fields.text(given, "id", at)
        known = next((one for one in self.waiting if one[1] == ident or (ident is None and one[0] == name)), None)
        if known is None:
            raise Untranslatable(at, f"{name!r} was not called in front of it")
        self.waiting.remove(known)
        response = given.get("response")
        text = content.dump_text(response if response is not None else {})
        if isinstance(response, dict) and len(response) == 1:
            only = next((response[key] for key in RESULTS if isinstance(response.get(key), str)), None)
            text = text if only is None else only
        told: Json = {"role": "tool", "tool_call_id": self.ids.fit(known[1]), "content": text}
        shown = [part for here, one in self.parts(given, at) if (part := self.said(one, here)) is not None]
        if self.rich:
            if shown:
                told["content"] = [{"type": "text", "text": text}, *shown]
            if isinstance(response, dict) and list(response) == ["error"]:
                told["is_error"] = True
        else:
            self.shown += shown
        return told


def _inline(data: Json, at: str) -> Json:
    media_type = fields.needed_text(data, "mimeType", at).lower()
    kind, _, subtype = media_type.partition("/")
    # Google's clients encode for URLs (RFC 4648 section 5), which other vendors do not take.
    raw = fields.needed_text(data, "data", at).replace("-", "+").replace("_", "/")
    raw += "=" * (-len(raw) % 4)
    url = content.as_data_url(media_type, raw, f"{at}.mimeType")
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    if kind == "audio":
        if (made := sound.as_wav(media_type, raw)) is not None:
            return {"type": "input_audio", "input_audio": {"data": made, "format": "wav"}}
        if subtype not in AUDIO:
            raise Untranslatable(f"{at}.mimeType", "audio must be wav, mp3 or PCM")
        return {"type": "input_audio", "input_audio": {"data": raw, "format": AUDIO[subtype]}}
    if kind == "video":
        raise Untranslatable(f"{at}.mimeType", "the provider of this model takes no videos")
    name = fields.text(data, "displayName", at) or "file"
    return {"type": "file", "file": {"filename": name, "file_data": url}}


def _file(data: Json, at: str) -> Json:
    url, media_type = fields.needed_text(data, "fileUri", at), fields.text(data, "mimeType", at) or ""
    if not url.startswith(("https://", "http://")) or not media_type.startswith("image/"):
        raise Untranslatable(at, "must be an image at an http(s) URL: the provider knows no other files by URI")
    return {"type": "image_url", "image_url": {"url": url}}


def _configure(config: Json, out: Json, options: Options) -> None:
    fields.copy(config, out, GENERATION)
    limit = fields.integer(config, "maxOutputTokens", "generationConfig")
    if limit is not None:
        out["max_completion_tokens"] = limit
    if stop := fields.texts(config, "stopSequences", "generationConfig"):
        out["stop"] = stop
    schema = config.get("responseJsonSchema")
    schema = config.get("_responseJsonSchema") if schema is None else schema
    own = fields.obj(config, "responseSchema", "generationConfig")
    if schema is None and own is not None:
        schema = lower_types(own)
    if isinstance(schema, dict):
        out["response_format"] = {"type": "json_schema", "json_schema": {"name": "response", "schema": schema}}
    elif config.get("responseMimeType") == "application/json":
        out["response_format"] = {"type": "json_object"}
    _think(plain(fields.obj(config, "thinkingConfig", "generationConfig") or {}), out, options)


def _think(thinking: Json, out: Json, options: Options) -> None:
    """Set the effort, or the budget for the formats that have budgets (`options.whole_ids`: on the way to these)."""
    at = "generationConfig.thinkingConfig"
    level = fields.text(thinking, "thinkingLevel", at)
    budget = fields.integer(thinking, "thinkingBudget", at)
    if level is not None:
        effort = LEVELS.get(level.upper())
        if effort is None:
            raise Untranslatable(f"{at}.thinkingLevel", "must be one of " + ", ".join(LEVELS))
        out["reasoning_effort"] = effort
    elif budget is not None and budget > 0:
        if options.whole_ids:
            out["thinking"] = {"type": "enabled", "budget_tokens": max(budget, efforts.LEAST_BUDGET)}
        else:
            out["reasoning_effort"] = efforts.level_of(budget)


def _tools(body: Json, dropped: list[str]) -> list[Json]:
    out: list[Json] = []
    for position, tool in enumerate(_listed(body, "tools")):
        for name, value in plain(tool).items():
            at = f"tools[{position}].{name}"
            if name != "functionDeclarations":
                ran = vendor_tools.of_gemini(name, plain(value), at, dropped) if isinstance(value, dict) else None
                if ran is not None:
                    out.append(ran)
                elif value is not None:
                    dropped.append(at)
                continue
            for one in fields.objects({name: value}, name, f"tools[{position}]"):
                out.append({"type": "function", "function": _function(plain(one), at)})
    return out


def _function(declared: Json, at: str) -> Json:
    function: Json = {"name": fields.needed_text(declared, "name", at)}
    if (description := fields.text(declared, "description", at)) is not None:
        function["description"] = description
    schema: Any = fields.obj(declared, "parametersJsonSchema", at)
    own = fields.obj(declared, "parameters", at)
    if schema is None and own is not None:
        schema = lower_types(own)
    function["parameters"] = schema or {"type": "object", "properties": {}}
    return function


def _choice(body: Json) -> Any:
    config = plain(fields.obj(body, "toolConfig") or {})
    calling = plain(fields.obj(config, "functionCallingConfig", "toolConfig") or {})
    at = "toolConfig.functionCallingConfig"
    mode = fields.text(calling, "mode", at)
    if mode is None:
        return None
    if mode.upper() not in MODES:
        raise Untranslatable(f"{at}.mode", "must be one of AUTO, ANY, NONE, VALIDATED")
    names = fields.texts(calling, "allowedFunctionNames", at)
    kind = MODES[mode.upper()]
    if not names or kind == "none":
        return kind
    if kind == "required" and len(names) == 1:
        return {"type": "function", "function": {"name": names[0]}}
    allowed = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": kind, "tools": allowed}}
