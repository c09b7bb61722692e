"""Complete replies of OpenAI's Responses (https://platform.openai.com/docs/api-reference/responses/object)."""

from __future__ import annotations

from headgate.dialect.llm.content import data_url, dump_text
from headgate.dialect.llm.contract import Json, TranslatedRequest, UpstreamGarbage
from headgate.dialect.llm.idents import sealed, wrapped
from headgate.dialect.llm.neutral_reply import (
    Image,
    NeutralReply,
    Part,
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
from headgate_engine.llm.translate.counts import responses_usage
from headgate_engine.llm.translate.evidence import (
    RanTool,
    responses_annotation,
    responses_item,
    responses_ran,
    url_annotation,
)
from headgate_engine.llm.translate.free_input import free_text
from headgate_engine.llm.translate.probs import chat_probs
from headgate_engine.llm.translate.stops import write_stop
from headgate_engine.llm.translate.writers import responses_usage_of

# Items that may say nothing that is missed.
QUIET = frozenset(("message", "reasoning", "mcp_list_tools"))


def read(body: Json, asked: TranslatedRequest) -> NeutralReply:
    """Return the neutral form of a reply. Raises UpstreamGarbage, also for a failed or unfinished response."""
    status = body.get("status", "completed")
    if status == "failed":
        raise UpstreamGarbage("the provider's response failed")
    if status not in ("completed", "incomplete"):
        raise garbage("status", f"is {status!r}")
    reply = NeutralReply(
        id=told(body.get("id")),
        model=told(body.get("model")),
        usage=responses_usage(body.get("usage")),
        service_tier=told(body.get("service_tier")) or None,
    )
    if status == "incomplete":
        details = body.get("incomplete_details")
        reply.stop = incomplete(told(details.get("reason")) if isinstance(details, dict) else "")
    if not isinstance(body.get("output"), list):
        raise garbage("output", "is not an array")
    for position, item in enumerate(body["output"]):
        parts = _parts(a_dict(item, f"output[{position}]"), reply.length(), asked)
        reply.parts += parts
        reply.untold = reply.untold or not (parts or told(item.get("type")) in QUIET)
        reply.probs += _probs(item)
    return reply


def incomplete(reason: str) -> str:
    """Return the stop reason of an incomplete response. Unknown reasons are treated as token limits."""
    return "filter" if reason == "content_filter" else "context" if "context" in reason else "length"


def _probs(item: Json) -> list[Json]:
    """Return the log probabilities of a message's texts."""
    if item.get("type") != "message":
        return []
    parts = [part for part in a_list(item.get("content"), "content") if isinstance(part, dict)]
    return [token for part in parts for token in chat_probs(part.get("logprobs"))]


def _parts(item: Json, at: int, asked: TranslatedRequest) -> list[Part]:
    """Return the parts of one output item. `at`: where its text begins."""
    kind = item.get("type")
    if kind == "message":
        parts: list[Part] = []
        for part in a_list(item.get("content"), "content"):
            part = a_dict(part, "content part")
            if part.get("type") == "output_text":
                text = a_text(part.get("text"), "text")
                noted = (url_annotation(one, at) for one in a_list(part.get("annotations"), "annotations"))
                parts.append(Text(text, tuple(one for one in noted if one is not None)))
                at += len(text)
            elif part.get("type") == "refusal":
                parts.append(Refusal(a_text(part.get("refusal"), "refusal")))
        return parts
    if kind in ("function_call", "custom_tool_call"):
        name = a_text(item.get("name"), "tool name")
        if kind == "function_call":
            arguments = a_text(item.get("arguments"), "arguments")
        else:
            arguments = dump_text({"input": a_text(item.get("input"), "input")})
        ident = a_text(item.get("call_id"), "call_id")
        return [ToolCall(ident, asked.names.get(name, name), arguments, custom=kind == "custom_tool_call")]
    if kind == "reasoning":
        found = [*a_list(item.get("summary"), "summary"), *a_list(item.get("content"), "reasoning content")]
        text = "".join(told(part.get("text")) for part in found if isinstance(part, dict))
        parts = [Thinking(text)] if text else []
        encrypted = told(item.get("encrypted_content"))
        return [*parts, RedactedThinking(sealed(told(item.get("id")), encrypted))] if encrypted else parts
    if kind == "image_generation_call":
        form, data = told(item.get("output_format")) or "png", told(item.get("result"))
        return [Image(f"data:image/{form};base64,{data}")] if data else []
    ran = responses_ran(item)
    return [] if ran is None else [ran]


def write(reply: NeutralReply, asked: TranslatedRequest) -> Json:
    """Return a reply in this format. The provider's id is replaced unless it has the form of a response id."""
    stop = reply.ended()
    status = write_stop("responses", stop)
    out: Json = {
        **asked.echo,
        "id": reply.id if reply.id.startswith("resp_") else f"resp_{asked.ident}",
        "object": "response",
        "created_at": reply.created or asked.created,
        "status": status,
        "model": reply.model or asked.requested or asked.model,
        "error": None,
        "incomplete_details": None,
        "output": _output(reply, asked),
        "usage": None if reply.usage is None else responses_usage_of(reply.usage),
    }
    if status == "incomplete":
        out["incomplete_details"] = {"reason": "content_filter" if stop == "filter" else "max_output_tokens"}
        if out["output"] and "status" in out["output"][-1]:
            # It is the last item that was cut.
            out["output"][-1]["status"] = "incomplete"
    if reply.service_tier is not None:
        out["service_tier"] = reply.service_tier
    asked.untold = reply.untold
    return out


def _output(reply: NeutralReply, asked: TranslatedRequest) -> list[Json]:
    """Return the output items. Adjacent texts form one message, adjacent thoughts one reasoning item.

    Thoughts that their vendor wants to see again are encrypted content (idents.wrapped) for clients that ask for it.
    """
    out: list[Json] = []
    spoken = 0
    for part in reply.parts:
        last = out[-1] if out else {}
        at = len(out)
        if isinstance(part, Text | Refusal):
            if not part.text:
                continue
            content = _content(part, spoken)
            if isinstance(part, Text) and reply.probs and not spoken:
                content["logprobs"] = reply.probs
            spoken += len(part.text) if isinstance(part, Text) else 0
            if last.get("type") == "message":
                last["content"].append(content)
            else:
                out.append({
                    "id": f"msg_{asked.ident}_{at}", "type": "message", "status": "completed", "role": "assistant",
                    "content": [content],
                })  # fmt: skip
        elif isinstance(part, Thinking):
            summary = {"type": "summary_text", "text": part.text}
            if last.get("type") == "reasoning" and "encrypted_content" not in last:
                last["summary"].append(summary)
            else:
                out.append({"id": f"rs_{asked.ident}_{at}", "type": "reasoning", "summary": [summary]})
            if part.signature and asked.seals:
                out[-1]["encrypted_content"] = wrapped(part.signature)
        elif isinstance(part, RedactedThinking) and asked.seals:
            secret = wrapped(part.data, redacted=True)
            out.append({"id": f"rs_{asked.ident}_{at}", "type": "reasoning", "summary": []})
            out[-1]["encrypted_content"] = secret
        elif isinstance(part, Image):
            data = data_url(part.url)
            if data is None:
                reply.untold = True
            else:
                out.append({
                    "id": f"ig_{asked.ident}_{at}", "type": "image_generation_call", "status": "completed",
                    "result": data.data, "output_format": data.media_type.partition("/")[2],
                })  # fmt: skip
        elif isinstance(part, Sound):
            reply.untold = True
        elif isinstance(part, ToolCall):
            out.append(_call(part, f"{asked.ident}_{at}", asked.customs))
        elif isinstance(part, RanTool):
            item = responses_item(part, f"{asked.ident}_{at}")
            if item is None:
                reply.untold = True
            else:
                out.append(item)
    return out


def _content(part: Text | Refusal, base: int) -> Json:
    """Return the content part. `base`: where its text begins."""
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    noted = [made for one in part.citations if (made := responses_annotation(one, base)) is not None]
    return {"type": "output_text", "text": part.text, "annotations": noted, "logprobs": []}


def _call(call: ToolCall, ident: str, customs: frozenset[str]) -> Json:
    if call.custom or call.name in customs:
        return {
            "id": f"ctc_{ident}",
            "type": "custom_tool_call",
            "call_id": call.id,
            "name": call.name,
            "input": free_text(call.arguments),
        }
    return {
        "id": f"fc_{ident}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments or "{}",
    }
