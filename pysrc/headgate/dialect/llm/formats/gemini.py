"""Complete replies of Gemini's generateContent (https://ai.google.dev/api/generate-content)."""

from __future__ import annotations

from headgate.dialect.llm.content import data_url, dump_text
from headgate.dialect.llm.contract import Json, TranslatedRequest
from headgate.dialect.llm.idents import THOUGHT, wrapped
from headgate.dialect.llm.neutral_reply import (
    Image,
    NeutralReply,
    RedactedThinking,
    Refusal,
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


def read(body: Json, asked: TranslatedRequest) -> NeutralReply:
    """Return the neutral form of a reply. A blocked prompt gives an empty reply with the stop reason `filter`.

    Raises UpstreamGarbage.
    """
    response_id = told(body.get("responseId"))
    model, usage = told(body.get("modelVersion")), gemini_usage(body.get("usageMetadata"))
    reply = NeutralReply(id=response_id, model=model, usage=usage)
    candidates = a_list(body.get("candidates"), "candidates")
    if not candidates:
        feedback = body.get("promptFeedback")
        if not isinstance(feedback, dict) or not feedback.get("blockReason"):
            raise garbage("candidates", "is empty")
        reply.stop = "filter"
        return reply
    names = _Names(response_id or asked.ident, asked)
    _candidate(reply, a_dict(candidates[0], "candidates[0]"), names)
    for position, candidate in enumerate(candidates[1:], 1):
        other = NeutralReply()
        _candidate(other, a_dict(candidate, f"candidates[{position}]"), names)
        reply.others.append(other)
    return reply


def write(reply: NeutralReply, asked: TranslatedRequest) -> Json:
    """Return a reply in this format."""
    out: Json = {
        "candidates": [_answer(one, index) for index, one in enumerate((reply, *reply.others))],
        "modelVersion": reply.model or asked.model,
        "responseId": reply.id or asked.ident,
    }
    asked.untold = any(one.untold for one in (reply, *reply.others))
    if reply.usage is not None:
        out["usageMetadata"] = gemini_usage_of(reply.usage)
    return out


def _answer(reply: NeutralReply, index: int) -> Json:
    parts: list[Json] = []
    for part in reply.parts:
        if isinstance(part, ToolCall):
            parts.append(function_call(part.id, part.name, part.arguments))
        elif isinstance(part, RanTool):
            ran = ran_parts(part)
            parts += ran
            reply.untold = reply.untold or not (ran or part.name == "web_search")
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
    stop = reply.ended()
    if stop == "end" and any(isinstance(part, Refusal) for part in reply.parts):
        stop = "filter"
    out: Json = {"content": {"parts": parts, "role": "model"}, "finishReason": write_stop("gemini", stop)}
    out["index"] = index
    if reply.probs:
        out["logprobsResult"] = gemini_result(reply.probs)
    tools = [part for part in reply.parts if isinstance(part, RanTool)]
    if found := grounding(reply.citations(), tools, reply.text()):
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


def _candidate(reply: NeutralReply, candidate: Json, names: _Names) -> None:
    reply.stop = read_stop("gemini", candidate.get("finishReason"))
    content = a_dict(candidate.get("content") or {}, "content")
    code: Json = {}
    for part in a_list(content.get("parts"), "parts"):
        part = a_dict(part, "a part")
        text = a_text(part.get("text"), "text")
        if text:
            reply.parts.append(Thinking(text) if part.get("thought") is True else Text(text))
        if isinstance(part.get("inlineData"), dict):
            shown = part["inlineData"]
            if told(shown.get("mimeType")).startswith("image/"):
                reply.parts.append(Image(f"data:{shown['mimeType']};base64,{told(shown.get('data'))}"))
            elif told(shown.get("mimeType")).startswith("audio/"):
                reply.parts.append(Sound(shown["mimeType"], told(shown.get("data"))))
            else:
                reply.untold = True
        if isinstance(part.get("executableCode"), dict):
            code = part["executableCode"]
        if isinstance(part.get("codeExecutionResult"), dict):
            ran = code_ran("", told(code.get("language")), told(code.get("code")), part["codeExecutionResult"])
            reply.parts.append(ran)
        if isinstance(part.get("functionCall"), dict):
            reply.parts.append(names.call(part["functionCall"], told(part.get("thoughtSignature"))))
    reply.probs = gemini_probs(candidate.get("logprobsResult"))
    citations, search = grounding_of(candidate, reply.text().encode("utf-8", "replace"), "")
    reply.cite(citations)
    if search is not None:
        reply.parts.append(search)
