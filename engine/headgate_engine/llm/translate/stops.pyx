"""Why a reply ended: the words of all formats, as one table each way."""

END = "end"
SEQUENCE = "stop_sequence"
LENGTH = "length"
CONTEXT = "context"
TOOLS = "tools"
FILTER = "filter"
PAUSE = "pause"
STOPS = (END, SEQUENCE, LENGTH, CONTEXT, TOOLS, FILTER, PAUSE)

READ = {
    "completions": {
        "stop": END,
        "length": LENGTH,
        "tool_calls": TOOLS,
        "function_call": TOOLS,
        "content_filter": FILTER,
    },
    "messages": {
        "end_turn": END,
        "stop_sequence": SEQUENCE,
        "max_tokens": LENGTH,
        "model_context_window_exceeded": CONTEXT,
        "tool_use": TOOLS,
        "refusal": FILTER,
        "pause_turn": PAUSE,
    },
    # `incomplete_details.reason`
    "responses": {"max_output_tokens": LENGTH, "max_tokens": LENGTH, "content_filter": FILTER},
    "gemini": {
        "STOP": END,
        "FINISH_REASON_UNSPECIFIED": END,
        "MAX_TOKENS": LENGTH,
        # Everything below is a reply that is not what was asked for; a client must not take it for whole.
        "SAFETY": FILTER,
        "RECITATION": FILTER,
        "LANGUAGE": FILTER,
        "OTHER": FILTER,
        "BLOCKLIST": FILTER,
        "PROHIBITED_CONTENT": FILTER,
        "SPII": FILTER,
        "MALFORMED_FUNCTION_CALL": FILTER,
        "UNEXPECTED_TOOL_CALL": FILTER,
        "TOO_MANY_TOOL_CALLS": FILTER,
        "IMAGE_SAFETY": FILTER,
        "IMAGE_PROHIBITED_CONTENT": FILTER,
        "IMAGE_RECITATION": FILTER,
        "IMAGE_OTHER": FILTER,
        "NO_IMAGE": FILTER,
        "MODEL_ARMOR": FILTER,
        "MISSING_THOUGHT_SIGNATURE": FILTER,
        "MALFORMED_RESPONSE": FILTER,
    },
    "converse": {
        "end_turn": END,
        "stop_sequence": SEQUENCE,
        "max_tokens": LENGTH,
        "model_context_window_exceeded": CONTEXT,
        "tool_use": TOOLS,
        "content_filtered": FILTER,
        "guardrail_intervened": FILTER,
        "malformed_model_output": FILTER,
        "malformed_tool_use": FILTER,
    },
}

WRITE = {
    "completions": {
        END: "stop",
        SEQUENCE: "stop",
        LENGTH: "length",
        CONTEXT: "length",
        TOOLS: "tool_calls",
        FILTER: "content_filter",
        PAUSE: "stop",
    },
    "messages": {
        END: "end_turn",
        SEQUENCE: "stop_sequence",
        LENGTH: "max_tokens",
        CONTEXT: "model_context_window_exceeded",
        TOOLS: "tool_use",
        FILTER: "refusal",
        PAUSE: "pause_turn",
    },
    "gemini": {
        END: "STOP",
        SEQUENCE: "STOP",
        LENGTH: "MAX_TOKENS",
        CONTEXT: "MAX_TOKENS",
        TOOLS: "STOP",
        FILTER: "SAFETY",
        PAUSE: "STOP",
    },
    "text": {
        END: "stop",
        SEQUENCE: "stop",
        LENGTH: "length",
        CONTEXT: "length",
        TOOLS: "stop",
        FILTER: "content_filter",
        PAUSE: "stop",
    },
    "converse": {
        END: "end_turn",
        SEQUENCE: "stop_sequence",
        LENGTH: "max_tokens",
        CONTEXT: "model_context_window_exceeded",
        TOOLS: "tool_use",
        FILTER: "content_filtered",
        PAUSE: "end_turn",
    },
    # The reply's status; LENGTH and CONTEXT have the reason `max_output_tokens`, FILTER has `content_filter`.
    "responses": {
        END: "completed",
        SEQUENCE: "completed",
        LENGTH: "incomplete",
        CONTEXT: "incomplete",
        TOOLS: "completed",
        FILTER: "incomplete",
        PAUSE: "completed",
    },
}

# Tiers of service in OpenAI's words, by Anthropic's, and back; others have no word.
MESSAGES_TIERS = {"standard": "default", "priority": "priority"}
TIERS_FOR_MESSAGES = {tier: word for word, tier in MESSAGES_TIERS.items()}

cdef dict readers = READ
cdef dict writers = WRITE


cpdef str read_stop(str format, object word):
    if not isinstance(word, str):
        return END
    return (<dict>readers[format]).get(word, END)


cpdef str tier_of_messages(object word):
    return MESSAGES_TIERS.get(word) if isinstance(word, str) else None


cpdef str write_stop(str format, str stop):
    return (<dict>writers[format])[stop]
