"""Where a stream comes to words; see first_words.pxd.

Events are read whole here: that are the first two or three of a stream, of requests that another provider could still serve.
"""

from headgate_engine.llm.translate.readers cimport loads

from headgate_engine.llm.translate.readers import Garbage

# Events in front of words, by the vendor's documentation:
# https://docs.anthropic.com/en/docs/build-with-claude/streaming,
# https://platform.openai.com/docs/api-reference/responses-streaming,
# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
MESSAGES = frozenset((b"message_start", b"ping", b"content_block_start"))
RESPONSES = frozenset((b"response.created", b"response.queued", b"response.in_progress", b"response.output_item.added",
                       b"response.content_part.added", b"response.reasoning_summary_part.added"))
FRAMES = frozenset(("messageStart", "contentBlockStart"))


cdef bint shows_words(int ending, const char* name, Py_ssize_t name_len, const char* data, Py_ssize_t n) except -1:
    cdef bytes named = name[:name_len] if name != NULL else b""
    if ending == END_RESPONSE:
        return named not in RESPONSES
    if ending == END_STOP and named not in MESSAGES:
        return True
    try:
        told = loads(data[:n])
        if ending == END_STOP:
            return block_has_words(told)
        if ending == END_DONE:
            return chunk_has_words(told)
        return ending != END_REASON or candidates_have_words(told)
    except (Garbage, RecursionError):
        return True


cdef bint frame_shows_words(str kind, bytes data) except -1:
    if kind != "chunk":
        return kind not in FRAMES
    try:
        told = loads(data)
        if not isinstance(told, dict) or str(told.get("type")).encode() not in MESSAGES:
            return True
        return block_has_words(told)
    except (Garbage, RecursionError):
        return True


def block_has_words(told):
    block = told.get("content_block") if isinstance(told, dict) else None
    return isinstance(block, dict) and bool(block.get("text") or block.get("thinking") or block.get("data"))


def chunk_has_words(told):
    choices = told.get("choices") if isinstance(told, dict) else None
    if not isinstance(choices, list):
        return True
    for choice in choices:
        if not isinstance(choice, dict) or choice.get("finish_reason"):
            return True
        delta = choice.get("delta")
        if isinstance(delta, dict) and any(value for name, value in delta.items() if name != "role"):
            return True
    return False


def candidates_have_words(told):
    if not isinstance(told, dict) or "promptFeedback" in told:
        return True
    for candidate in told.get("candidates") or ():
        if not isinstance(candidate, dict) or candidate.get("finishReason"):
            return True
        content = candidate.get("content")
        for part in (content.get("parts") if isinstance(content, dict) else None) or ():
            if not isinstance(part, dict) or part != {"text": ""}:
                return True
    return False
