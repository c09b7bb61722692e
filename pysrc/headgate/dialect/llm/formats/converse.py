"""Complete replies of Bedrock Converse.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
"""

from __future__ import annotations

from headgate.dialect.llm.content import data_url, dump_text
from headgate.dialect.llm.contract import Json, TranslatedRequest
from headgate.dialect.llm.idents import in_base64
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
    input_of,
    told,
)
from headgate_engine.llm.translate.amazon import PICTURES, TIERS, converse_usage_of
from headgate_engine.llm.translate.counts import UsageCounts, converse_usage
from headgate_engine.llm.translate.evidence import RanTool, converse_citation, converse_citation_of
from headgate_engine.llm.translate.stops import read_stop, write_stop

# Searches that the provider runs itself.
SEARCHES = frozenset({"web_search", "nova_grounding"})
# Searches of other vendors.
RAN_SEARCHES = frozenset({"web_search", "web_fetch"})


def read(body: Json, asked: TranslatedRequest) -> NeutralReply:
    """Return the neutral form of a reply, without an id: Bedrock has it in a header. Raises UpstreamGarbage."""
    message = a_dict(a_dict(body.get("output"), "output").get("message"), "output.message")
    if "content" not in message:
        raise garbage("output.message.content", "is missing")
    tier = body.get("serviceTier")
    reply = NeutralReply(
        stop=read_stop("converse", body.get("stopReason")),
        usage=converse_usage(body.get("usage")),
        service_tier=told(tier.get("type")) or None if isinstance(tier, dict) else None,
    )
    for block in a_list(message["content"], "content"):
        part = _part(a_dict(block, "a content block"), reply.length(), asked)
        if part is not None:
            reply.parts.append(part)
        elif not _is_search(block):
            reply.untold = True
    return reply


def write(reply: NeutralReply, asked: TranslatedRequest) -> Json:
    """Return a reply in this format, which has no place for its model."""
    content = [block for part in reply.parts if (block := _block(part, reply)) is not None]
    asked.untold = reply.untold
    stop = reply.ended()
    if stop == "end" and any(isinstance(part, Refusal) for part in reply.parts):
        stop = "filter"
    out: Json = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": write_stop("converse", stop),
        "usage": converse_usage_of(reply.usage or UsageCounts()),
        "metrics": {"latencyMs": asked.latency_ms()},
    }
    if reply.service_tier in TIERS:
        out["serviceTier"] = {"type": reply.service_tier}
    return out


def _block(part: Part, reply: NeutralReply) -> Json | None:
    """Return the block of a part, None for one without a place."""
    if isinstance(part, ToolCall):
        return {"toolUse": {"toolUseId": part.id, "name": part.name, "input": input_of(part)}}
    if isinstance(part, Thinking):
        thought = {"text": part.text, "signature": part.signature} if part.signature else {"text": part.text}
        return {"reasoningContent": {"reasoningText": thought}}
    if isinstance(part, RedactedThinking):
        return {"reasoningContent": {"redactedContent": in_base64(part.data)}}
    if isinstance(part, RanTool):
        # Of a search the citations are told.
        reply.untold = reply.untold or part.name not in RAN_SEARCHES
        return None
    if isinstance(part, Image):
        data = data_url(part.url)
        form = "" if data is None else data.media_type.rpartition("/")[2]
        if data is not None and form in PICTURES:
            return {"image": {"format": form, "source": {"bytes": data.data}}}
    if isinstance(part, Image | Sound):
        reply.untold = True
        return None
    if isinstance(part, Text) and part.citations:
        cited = [converse_citation_of(one) for one in part.citations]
        return {"citationsContent": {"content": [{"text": part.text}], "citations": cited}}
    return {"text": part.text} if part.text else None


def _is_search(block: Json) -> bool:
    """Return whether a block is of a search that the provider ran, of which citations are told."""
    use = block.get("toolUse")
    return "toolResult" in block or (isinstance(use, dict) and told(use.get("name")) in SEARCHES)


def _part(block: Json, at: int, asked: TranslatedRequest) -> Part | None:
    """Return the part of a block. `at`: where its text begins."""
    if "text" in block:
        return Text(a_text(block["text"], "text"))
    if "citationsContent" in block:
        holder = a_dict(block["citationsContent"], "citationsContent")
        cited = a_list(holder.get("content"), "citationsContent.content")
        reply = "".join(told(one.get("text")) for one in cited if isinstance(one, dict))
        sources = a_list(holder.get("citations"), "citationsContent.citations")
        found = (converse_citation(one, at, at + len(reply)) for one in sources)
        return Text(reply, tuple(one for one in found if one is not None))
    if "toolUse" in block:
        use = a_dict(block["toolUse"], "toolUse")
        if use.get("type") is not None:
            # The provider runs tools of its own.
            return None
        name = a_text(use.get("name"), "tool name")
        given = use.get("input")
        ident = a_text(use.get("toolUseId"), "toolUseId")
        return ToolCall(ident, asked.names.get(name, name), dump_text(given if given is not None else {}))
    if "reasoningContent" in block:
        reasoning = a_dict(block["reasoningContent"], "reasoningContent")
        if reasoning.get("redactedContent") is not None:
            return RedactedThinking(a_text(reasoning["redactedContent"], "redactedContent"))
        text = a_dict(reasoning.get("reasoningText") or {}, "reasoningText")
        return Thinking(a_text(text.get("text"), "reasoning"), told(text.get("signature")))
    return None
