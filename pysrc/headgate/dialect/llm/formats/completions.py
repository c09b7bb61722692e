"""Complete replies of chat completions (https://platform.openai.com/docs/api-reference/chat/object)."""

from __future__ import annotations

from typing import Any

from headgate.dialect.llm.content import dump_text
from headgate.dialect.llm.contract import Json, TranslatedRequest
from headgate.dialect.llm.idents import THOUGHT, sealed, signature_in
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
from headgate.dialect.llm.reasoning_details import signatures_in
from headgate.dialect.llm.sound import PCM16, for_chat
from headgate_engine.llm.translate.counts import completions_usage
from headgate_engine.llm.translate.evidence import chat_annotation, url_annotation
from headgate_engine.llm.translate.free_input import free_text
from headgate_engine.llm.translate.probs import chat_probs
from headgate_engine.llm.translate.stops import read_stop, write_stop
from headgate_engine.llm.translate.writers import completions_usage_of


def read(body: Json, asked: TranslatedRequest) -> NeutralReply:
    """Return the neutral form of a reply. Raises UpstreamGarbage."""
    choices = a_list(body.get("choices"), "choices")
    if not choices:
        raise garbage("choices", "is empty")
    reply = _answer(choices[0], 0, asked)
    reply.id, reply.model = told(body.get("id")), told(body.get("model"))
    reply.usage = completions_usage(body.get("usage"))
    reply.service_tier = told(body.get("service_tier")) or None
    reply.others = [_answer(choice, at, asked) for at, choice in enumerate(choices[1:], 1)]
    return reply


def _answer(given: object, at: int, asked: TranslatedRequest) -> NeutralReply:
    """Return the neutral form of one choice."""
    choice = a_dict(given, f"choices[{at}]")
    # Google's endpoint leaves the message out when the limit was reached before the first word.
    cut = choice.get("message") is None and isinstance(choice.get("finish_reason"), str)
    message = {} if cut else a_dict(choice.get("message"), f"choices[{at}].message")
    reply = NeutralReply(stop=read_stop("completions", choice.get("finish_reason")))
    thinking = message.get("reasoning_content") or message.get("reasoning")
    details = a_list(message.get("reasoning_details"), "message.reasoning_details")
    if blocks := a_list(message.get("thinking_blocks"), "message.thinking_blocks"):
        reply.parts += [part for block in blocks if (part := _thought(a_dict(block, "a thinking block"))) is not None]
    elif details:
        reply.parts += [part for one in details if (part := _detail(a_dict(one, "a reasoning detail"))) is not None]
    elif isinstance(thinking, str) and thinking:
        reply.parts.append(Thinking(thinking, told(message.get("reasoning_signature"))))
    heard: Json = message["audio"] if isinstance(message.get("audio"), dict) else {}
    if told(heard.get("data")):
        # The gateway asks for `pcm16` alone.
        reply.parts.append(Sound(PCM16, heard["data"]))
    if text := _text(message.get("content")) or told(heard.get("transcript")):
        noted = a_list(message.get("annotations"), "message.annotations")
        found = [one for one in (url_annotation(note, 0) for note in noted) if one is not None]
        reply.parts.append(Text(text, tuple(found)))
    if refusal := a_text(message.get("refusal"), "message.refusal"):
        reply.parts.append(Refusal(refusal))
    for shown in a_list(message.get("images"), "message.images"):
        url = shown.get("image_url") if isinstance(shown, dict) else None
        if isinstance(url, dict) and told(url.get("url")):
            reply.parts.append(Image(url["url"]))
    signatures = signatures_in([one for one in details if isinstance(one, dict)])
    probs = choice.get("logprobs")
    reply.probs = chat_probs(probs.get("content")) if isinstance(probs, dict) else []
    for position, call in enumerate(a_list(message.get("tool_calls"), "message.tool_calls")):
        made = _call(a_dict(call, f"tool_calls[{position}]"), position, asked)
        if made.id in signatures:
            # The client sends the id back, and with it what the vendor wants to see again.
            made = made._replace(id=f"{made.id}{THOUGHT}{signatures[made.id]}")
        reply.parts.append(made)
    return reply


def _thought(block: Json) -> Thinking | RedactedThinking | None:
    """Return an entry of `thinking_blocks`, in which LiteLLM tells thoughts; None for an empty one."""
    if block.get("type") == "redacted_thinking":
        return RedactedThinking(a_text(block.get("data"), "redacted_thinking"))
    thinking, signature = a_text(block.get("thinking"), "thinking"), told(block.get("signature"))
    return Thinking(thinking, signature) if thinking or signature else None


def _detail(one: Json) -> Thinking | RedactedThinking | None:
    """Return an entry of `reasoning_details`, in which OpenRouter tells thoughts; None for one that says nothing.

    Source: https://openrouter.ai/docs/use-cases/reasoning-tokens.
    """
    kind, form = one.get("type"), one.get("format")
    if kind == "reasoning.encrypted":
        data = told(one.get("data"))
        if form == "openai-responses-v1":
            return RedactedThinking(sealed(told(one.get("id")), data))
        return RedactedThinking(data) if data and form in (None, "anthropic-claude-v1") else None
    text = told(one.get("text")) or told(one.get("summary"))
    signature = told(one.get("signature")) if form in (None, "anthropic-claude-v1") else ""
    return Thinking(text, signature) if text or signature else None


def _text(content: object) -> str:
    """Return the text of `content`. Some vendors send a list of parts."""
    if isinstance(content, list):
        return "".join(told(part.get("text")) for part in content if isinstance(part, dict))
    return a_text(content, "message.content")


def _call(call: Json, position: int, asked: TranslatedRequest) -> ToolCall:
    ident = a_text(call.get("id"), "tool call id") or f"call_{asked.ident}_{position}"
    if signature := signature_in(call):
        ident = f"{ident}{THOUGHT}{signature}"
    if isinstance(call.get("custom"), dict):
        custom: Json = call["custom"]
        given = dump_text({"input": a_text(custom.get("input"), "tool input")})
        return ToolCall(ident, a_text(custom.get("name"), "tool name"), given, custom=True)
    function = a_dict(call.get("function"), "tool call function")
    name = a_text(function.get("name"), "tool name")
    if not name:
        raise garbage("a tool call", "has no name")
    arguments = function.get("arguments")
    # Some vendors send the arguments as an object.
    text = dump_text(arguments) if isinstance(arguments, dict) else a_text(arguments, "tool arguments")
    return ToolCall(ident, asked.names.get(name, name), text)


def write(reply: NeutralReply, asked: TranslatedRequest) -> Json:
    """Return a reply in this format."""
    out: Json = {
        "id": reply.id or f"chatcmpl-{asked.ident}",
        "object": "chat.completion",
        "created": reply.created or asked.created,
        "model": reply.model or asked.model,
        "choices": [_choice(one, index, asked) for index, one in enumerate((reply, *reply.others))],
    }
    asked.untold = any(one.untold for one in (reply, *reply.others))
    if reply.usage is not None:
        out["usage"] = completions_usage_of(reply.usage)
    if reply.service_tier is not None:
        out["service_tier"] = reply.service_tier
    return out


def _choice(reply: NeutralReply, index: int, asked: TranslatedRequest) -> Json:
    text, calls = reply.text(), reply.calls()
    refusal = "".join(part.text for part in reply.parts if isinstance(part, Refusal))
    message: Json = {"role": "assistant", "content": text or (None if calls or refusal else "")}
    message["refusal"] = refusal or None
    if thinking := reply.thinking():
        message["reasoning_content"] = thinking
        signatures = [part.signature for part in reply.parts if isinstance(part, Thinking) and part.signature]
        # `reasoning_content` has one signature, which must cover all of it.
        if len(signatures) == 1 and sum(isinstance(part, Thinking) for part in reply.parts) == 1:
            message["reasoning_signature"] = signatures[0]
    if blocks := [block for part in reply.parts for block in _thinking_block(part)]:
        message["thinking_blocks"] = blocks
    if annotations := [made for made in map(chat_annotation, reply.citations()) if made is not None]:
        message["annotations"] = annotations
    if shown := reply.images():
        # As OpenRouter and LiteLLM tell pictures.
        message["images"] = [
            {"type": "image_url", "image_url": {"url": one.url}, "index": at} for at, one in enumerate(shown)
        ]
    if reply.sounds():
        _speak(message, reply, asked)
    reply.untold = reply.untold or reply.ran_others()
    if calls:
        message["tool_calls"] = [_tool_call(call, asked.customs) for call in calls]
    choice: dict[str, Any] = {"index": index, "message": message, "logprobs": None}
    if reply.probs:
        choice["logprobs"] = {"content": reply.probs, "refusal": None}
    choice["finish_reason"] = write_stop("completions", reply.ended())
    return choice


def _speak(message: Json, reply: NeutralReply, asked: TranslatedRequest) -> None:
    """Set `audio` of a message. Nothing is kept of it, so that it has expired for other turns."""
    data = for_chat(reply.sounds(), asked.sound)
    if data is None:
        reply.untold = True
        return
    message["content"] = message["content"] or None
    message["audio"] = {"id": f"audio_{asked.ident}", "data": data, "expires_at": asked.created, "transcript": ""}


def _thinking_block(part: Part) -> list[Json]:
    """Return a part as an entry of `thinking_blocks`, [] for anything but a thought that can go back to its vendor."""
    if isinstance(part, RedactedThinking):
        return [{"type": "redacted_thinking", "data": part.data}]
    if isinstance(part, Thinking) and part.signature:
        return [{"type": "thinking", "thinking": part.text, "signature": part.signature}]
    return []


def _tool_call(call: ToolCall, customs: frozenset[str]) -> Json:
    """Return one entry of `tool_calls`. `customs`: names of the client's custom tools."""
    if call.custom or call.name in customs:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": free_text(call.arguments)}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
