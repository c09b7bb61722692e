"""Complete replies of Anthropic's Messages (https://docs.anthropic.com/en/api/messages)."""

from __future__ import annotations

from headgate.dialect.llm.content import dump_text
from headgate.dialect.llm.contract import Json, TranslatedRequest
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
from headgate_engine.llm.translate.counts import UsageCounts, exclusive_usage
from headgate_engine.llm.translate.evidence import (
    RanTool,
    is_ran,
    is_result,
    messages_blocks,
    messages_citation,
    messages_citation_of,
    messages_ran,
)
from headgate_engine.llm.translate.stops import TIERS_FOR_MESSAGES, read_stop, tier_of_messages, write_stop
from headgate_engine.llm.translate.writers import messages_usage_of


def read(body: Json, asked: TranslatedRequest) -> NeutralReply:
    """Return the neutral form of a reply. Raises UpstreamGarbage."""
    if "content" not in body:
        raise garbage("content", "is missing")
    usage = body.get("usage")
    reply = NeutralReply(
        id=told(body.get("id")),
        model=told(body.get("model")),
        stop=read_stop("messages", body.get("stop_reason")),
        sequence=told(body.get("stop_sequence")) or None,
        usage=exclusive_usage(usage),
        service_tier=tier_of_messages(usage.get("service_tier")) if isinstance(usage, dict) else None,
    )
    blocks = [a_dict(item, f"content[{at}]") for at, item in enumerate(a_list(body["content"], "content"))]
    results = {told(block.get("tool_use_id")): block for block in blocks if is_result(block.get("type"))}
    for block in blocks:
        part = _part(block, reply.length(), results, asked)
        if part is not None:
            reply.parts.append(part)
        elif not is_result(block.get("type")):
            reply.untold = True
    return reply


def _part(block: Json, at: int, results: dict[str, Json], asked: TranslatedRequest) -> Part | None:
    """Return the part of a block. `at`: where its text begins; `results`: of tools that the provider has run, by id."""
    kind = block.get("type")
    if kind == "text":
        text = a_text(block.get("text"), "text")
        cited = (messages_citation(one, at, at + len(text)) for one in a_list(block.get("citations"), "citations"))
        return Text(text, tuple(one for one in cited if one is not None))
    if is_ran(kind):
        return messages_ran(block, results.get(told(block.get("id"))))
    if kind == "thinking":
        return Thinking(a_text(block.get("thinking"), "thinking"), told(block.get("signature")))
    if kind == "redacted_thinking":
        return RedactedThinking(a_text(block.get("data"), "redacted_thinking"))
    if kind == "tool_use":
        name = a_text(block.get("name"), "tool name")
        given = block.get("input")
        ident = a_text(block.get("id"), "tool use id")
        return ToolCall(ident, asked.names.get(name, name), dump_text(given if given is not None else {}))
    return None


def write(reply: NeutralReply, asked: TranslatedRequest) -> Json:
    """Return a reply in this format."""
    content: list[Json] = []
    for part in reply.parts:
        if isinstance(part, ToolCall):
            content.append({"type": "tool_use", "id": part.id, "name": part.name, "input": input_of(part)})
        elif isinstance(part, Thinking):
            content.append({"type": "thinking", "thinking": part.text, "signature": part.signature})
        elif isinstance(part, RedactedThinking):
            content.append({"type": "redacted_thinking", "data": part.data})
        elif isinstance(part, RanTool):
            ran = messages_blocks(part, f"{asked.ident}_{len(content)}")
            content += ran
            reply.untold = reply.untold or not ran
        elif isinstance(part, Image | Sound):
            reply.untold = True
        elif isinstance(part, Text) and part.citations:
            cited = [messages_citation_of(one) for one in part.citations]
            content.append({"type": "text", "text": part.text, "citations": cited})
        elif part.text:
            content.append({"type": "text", "text": part.text})
    asked.untold = reply.untold
    stop = reply.ended()
    if stop == "end" and any(isinstance(part, Refusal) for part in reply.parts):
        stop = "filter"
    usage = messages_usage_of(reply.usage or UsageCounts())
    if reply.service_tier in TIERS_FOR_MESSAGES:
        usage["service_tier"] = TIERS_FOR_MESSAGES[reply.service_tier]
    return {
        "id": reply.id or f"msg_{asked.ident}",
        "type": "message",
        "role": "assistant",
        "model": reply.model or asked.model,
        "content": content,
        "stop_reason": write_stop("messages", stop),
        "stop_sequence": reply.sequence,
        "usage": usage,
    }
