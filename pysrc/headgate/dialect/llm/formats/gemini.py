"""Complete replies of Gemini's generateContent (https://ai.google.dev/api/generate-content)."""

from __future__ import annotations

from headgate.dialect.llm.content import data_url, dump_text
from headgate.dialect.llm.contract import Json, TranslatedRequest
from headgate.dialect.llm.idents import THOUGHT, wrapped
from headgate.dialect.llm.said import (
    Image,
    RedactedThinking,
    Refusal,
    Said,
    Sound,
    Text,
    Thinking,
    ToolCall,
    a_dict,
    a_list,
    a_text,
    garbage,
    told,
)
from headgate_engine.llm.translate.counts import gemini_usage
from headgate_engine.llm.translate.evidence import RanTool, code_ran, grounding_of
from headgate_engine.llm.translate.google import function_call, gemini_usage_of, grounding, ran_parts
from headgate_engine.llm.translate.probs import gemini_probs, gemini_result
from headgate_engine.llm.translate.stops import read_stop, write_stop


def read(body: Json, asked: TranslatedRequest) -> Said:
    """Return the neutral form of a reply. A blocked prompt gives an empty reply with the stop reason `filter`.

    Raises UpstreamGarbage.
    """
    response_id = told(body.get("responseId"))
    said = Said(id=response_id, model=told(body.get("modelVersion")), usage=gemini_usage(body.get("usageMetadata")))
    candidates = a_list(body.get("candidates"), "candidates")
    if not candidates:
        feedback = body.get("promptFeedback")
        if not isinstance(feedback, dict) or not feedback.get("blockReason"):
            raise garbage("candidates", "is empty")
        said.stop = "filter"
        return said
    names = _Names(response_id or asked.ident, asked)
    _candidate(said, a_dict(candidates[0], "candidates[0]"), names)
    for position, candidate in enumerate(candidates[1:], 1):
        other = Said()
        _candidate(other, a_dict(candidate, f"candidates[{position}]"), names)
        said.others.append(other)
    return said


def write(said: Said, asked: TranslatedRequest) -> Json:
    """Return a reply in this format."""
    out: Json = {
        "candidates": [_answer(one, index) for index, one in enumerate((said, *said.others))],
        "modelVersion": said.model or asked.model,
        "responseId": said.id or asked.ident,
    }
    asked.untold = any(one.untold for one in (said, *said.others))
    if said.usage is not None:
        out["usageMetadata"] = gemini_usage_of(said.usage)
    return out


def _answer(said: Said, index: int) -> Json:
    parts: list[Json] = []
    for part in said.parts:
        if isinstance(part, ToolCall):
            parts.append(function_call(part.id, part.name, part.arguments))
        elif isinstance(part, RanTool):
            ran = ran_parts(part)
            parts += ran
            said.untold = said.untold or not (ran or part.name == "web_search")
        elif isinstance(part, Image):
            parts.append(_shown(part))
        elif isinstance(part, Sound):
            parts.append({"inlineData": {"mimeType": part.media_type, "data": part.data}})
        elif isinstance(part, RedactedThinking):
            parts.append({"text": "", "thought": True, "thoughtSignature": wrapped(part.data, redacted=True)})
        elif isinstance(part, Thinking):
            thought: Json = {"text": part.text, "thought": True}
            if part.signature:
                thought["thoughtSignature"] = wrapped(part.signature)
            parts.append(thought)
        elif part.text:
            parts.append({"text": part.text})
    stop = said.ended()
    if stop == "end" and any(isinstance(part, Refusal) for part in said.parts):
        stop = "filter"
    out: Json = {"content": {"parts": parts, "role": "model"}, "finishReason": write_stop("gemini", stop)}
    out["index"] = index
    if said.probs:
        out["logprobsResult"] = gemini_result(said.probs)
    tools = [part for part in said.parts if isinstance(part, RanTool)]
    if found := grounding(said.citations(), tools, said.text()):
        out["groundingMetadata"] = found
    return out


def _shown(image: Image) -> Json:
    data = data_url(image.url)
    if data is None:
        return {"fileData": {"mimeType": "image/png", "fileUri": image.url}}
    return {"inlineData": {"mimeType": data.media_type, "data": data.data}}


class _Names:
    """Makes ids for tool calls to which the provider has given none."""

    def __init__(self, ident: str, asked: TranslatedRequest) -> None:
        self.ident = ident
        self.asked = asked
        self.calls = 0

    def call(self, call: Json, signature: str) -> ToolCall:
        """Return the neutral form of a tool call. `signature` is that of its thought, or ""."""
        ident = told(call.get("id")) or f"call_{self.ident}_{self.calls}"
        self.calls += 1
        if signature:
            ident = f"{ident}{THOUGHT}{signature}"
        name = a_text(call.get("name"), "function name")
        return ToolCall(ident, self.asked.names.get(name, name), dump_text(call.get("args") or {}))


def _candidate(said: Said, candidate: Json, names: _Names) -> None:
    said.stop = read_stop("gemini", candidate.get("finishReason"))
    content = a_dict(candidate.get("content") or {}, "content")
    code: Json = {}
    for part in a_list(content.get("parts"), "parts"):
        part = a_dict(part, "a part")
        text = a_text(part.get("text"), "text")
        if text:
            said.parts.append(Thinking(text) if part.get("thought") is True else Text(text))
        if isinstance(part.get("inlineData"), dict):
            shown = part["inlineData"]
            if told(shown.get("mimeType")).startswith("image/"):
                said.parts.append(Image(f"data:{shown['mimeType']};base64,{told(shown.get('data'))}"))
            elif told(shown.get("mimeType")).startswith("audio/"):
                said.parts.append(Sound(shown["mimeType"], told(shown.get("data"))))
            else:
                said.untold = True
        if isinstance(part.get("executableCode"), dict):
            code = part["executableCode"]
        if isinstance(part.get("codeExecutionResult"), dict):
            ran = code_ran("", told(code.get("language")), told(code.get("code")), part["codeExecutionResult"])
            said.parts.append(ran)
        if isinstance(part.get("functionCall"), dict):
            said.parts.append(names.call(part["functionCall"], told(part.get("thoughtSignature"))))
    said.probs = gemini_probs(candidate.get("logprobsResult"))
    citations, search = grounding_of(candidate, said.text().encode("utf-8", "replace"), "")
    said.cite(citations)
    if search is not None:
        said.parts.append(search)
