"""Plain chats between Messages and chat completions; see plain.pxd.

Whatever is made here, the general translations would make as well, member by member: they are what the tests compare with.
A name that is not known here is a reason to leave the whole to them.
"""

from headgate_engine.llm.translate.counts cimport UsageCounts
from headgate_engine.llm.translate.readers cimport loads
from headgate_engine.llm.translate.stops cimport read_stop, write_stop
from headgate_engine.llm.translate.writers cimport dumps

from headgate_engine.llm.translate.stops import TIERS_FOR_MESSAGES
from headgate_engine.llm.translate.writers import messages_usage_of

# Separates the id of a tool call from a signature (headgate.dialect.llm.idents).
cdef str THOUGHT = "__thought__"
# The members of a plain request.
cdef frozenset REQUEST = frozenset(("model", "messages", "system", "max_tokens", "stop_sequences", "metadata", "temperature",
                                    "top_p", "stream"))
# Of a reply, its choice, its message, and a call; True: it has a value, else it must be null, false or empty.
cdef dict REPLY = {"id": True, "object": True, "created": True, "model": True, "choices": True, "usage": True,
                   "system_fingerprint": True, "service_tier": True}
cdef dict CHOICE = {"index": True, "message": True, "finish_reason": True, "logprobs": False}
cdef dict MESSAGE = {"role": True, "content": True, "tool_calls": True, "refusal": False, "annotations": False,
                     "audio": False, "function_call": False, "reasoning": False, "reasoning_content": False}
cdef dict CALL = {"id": True, "type": True, "function": True, "index": True}


cdef bint is_plain(dict holder, dict known) except -1:
    """Return whether an object has known members alone."""
    for name, value in holder.items():
        says = known.get(name)
        if says is None or says is False and value:
            return False
    return True


cdef str text_of(object block):
    """Return the text of a text block without further members, None for anything else."""
    if type(block) is dict and len(<dict>block) == 2 and (<dict>block).get("type") == "text":
        text = (<dict>block).get("text")
        if type(text) is str:
            return text
    return None


cdef list text_parts(object blocks):
    """Return text blocks as parts, None if there is anything else among them."""
    cdef list found = []
    cdef str text
    if type(blocks) is not list:
        return None
    for block in <list>blocks:
        text = text_of(block)
        if text is None:
            return None
        found.append({"type": "text", "text": text})
    return found


cdef bint fits(object ident, Py_ssize_t longest) except -1:
    if longest == 0:
        return type(ident) is str
    return type(ident) is str and 0 < len(<str>ident) <= longest and THOUGHT not in <str>ident


cdef dict tool_turn(dict block, Py_ssize_t longest):
    """Return the message for the result of a tool."""
    cdef object ident = block.get("tool_use_id")
    cdef object content = block.get("content")
    if not fits(ident, longest) or len(block) != (3 if "content" in block else 2):
        return None
    if content is None:
        content = ""
    elif type(content) is not str:
        content = text_parts(content)
        if content is None:
            return None
        content = content or ""
    return {"role": "tool", "tool_call_id": ident, "content": content}


cdef dict call_of(dict block, Py_ssize_t longest):
    """Return the tool call for a `tool_use` block."""
    cdef object name = block.get("name")
    cdef object given = block.get("input")
    if len(block) != 4 or type(name) is not str or type(given) is not dict or not fits(block.get("id"), longest):
        return None
    return {"id": block["id"], "type": "function", "function": {"name": name, "arguments": dumps(given).decode()}}


cdef list plain_turn(dict message, Py_ssize_t longest):
    cdef object role = message.get("role")
    cdef object content = message.get("content")
    cdef list out = []
    cdef list parts = []
    cdef list calls = []
    cdef dict made
    cdef str text
    cdef bint user = role == "user"
    if len(message) != 2 or not user and role != "assistant":
        return None
    if type(content) is str:
        return [{"role": role, "content": content}]
    if type(content) is not list:
        return None
    for block in <list>content:
        text = text_of(block)
        if text is not None:
            parts.append({"type": "text", "text": text})
            continue
        if type(block) is not dict:
            return None
        kind = (<dict>block).get("type")
        if user and kind == "tool_result":
            made = tool_turn(<dict>block, longest)
            if made is not None:
                out.append(made)
        elif not user and kind == "tool_use":
            made = call_of(<dict>block, longest)
            if made is not None:
                calls.append(made)
        else:
            return None
        if made is None:
            return None
    if user:
        if parts:
            out.append({"role": "user", "content": parts})
    elif calls:
        out.append({"role": "assistant", "content": parts or None, "tool_calls": calls})
    elif parts:
        out.append({"role": "assistant", "content": parts})
    return out


def chat_turns(dict message not None, Py_ssize_t longest):
    return plain_turn(message, longest)


def chat_request(dict body not None, str model not None, Py_ssize_t longest):
    cdef list messages = []
    cdef list turns
    cdef dict out
    cdef object found
    if not model or not body.keys() <= REQUEST:
        return None
    found = body.get("system")
    if found:
        if type(found) is not str:
            found = text_parts(found)
            if found is None:
                return None
        messages.append({"role": "system", "content": found})
    found = body.get("messages")
    if type(found) is not list or not found:
        return None
    for message in <list>found:
        turns = plain_turn(<dict>message, longest) if type(message) is dict else None
        if turns is None:
            return None
        messages += turns
    out = {"model": model, "messages": messages}
    found = body.get("max_tokens")
    if found is not None:
        if type(found) is not int:
            return None
        out["max_completion_tokens"] = found
    found = body.get("stop_sequences")
    if found is not None:
        if type(found) is not list:
            return None
        for one in <list>found:
            if type(one) is not str:
                return None
        if found:
            out["stop"] = found
    found = body.get("metadata")
    if found is not None:
        if type(found) is not dict:
            return None
        found = (<dict>found).get("user_id")
        if found is not None:
            if type(found) is not str:
                return None
            out["user"] = found
    for name in ("temperature", "top_p"):
        found = body.get(name)
        if found is not None:
            out[name] = found
    found = body.get("stream")
    if found is True:
        out["stream"] = True
        out["stream_options"] = {"include_usage": True}
    elif found is not None and found is not False:
        return None
    return out, found is True


cdef dict use_of(object call, dict names):
    """Return the `tool_use` block for a tool call of a reply."""
    cdef object ident, name, given
    if type(call) is not dict or not is_plain(<dict>call, CALL) or type((<dict>call).get("function")) is not dict:
        return None
    ident = (<dict>call).get("id")
    function = <dict>(<dict>call)["function"]
    name = function.get("name")
    given = function.get("arguments")
    if len(<dict>function) != 2 or type(ident) is not str or not ident or type(name) is not str or type(given) is not str:
        return None
    if not name or not given:
        return None
    try:
        given = loads(given)
    except ValueError:
        return None
    if type(given) is not dict:
        return None
    return {"type": "tool_use", "id": ident, "name": names.get(name, name), "input": given}


def message_reply(dict body not None, str model not None, str ident not None, dict names not None, UsageCounts usage):
    cdef object choices = body.get("choices")
    cdef object text, calls, id, answered
    cdef dict choice, message, made
    cdef list content = []
    cdef str stop
    if type(choices) is not list or len(<list>choices) != 1 or not is_plain(body, REPLY):
        return None
    if type((<list>choices)[0]) is not dict or type((<dict>(<list>choices)[0]).get("message")) is not dict:
        return None
    choice = <dict>(<list>choices)[0]
    message = <dict>choice["message"]
    if not is_plain(choice, CHOICE) or not is_plain(message, MESSAGE):
        return None
    text = message.get("content")
    if text is not None and type(text) is not str:
        return None
    if text:
        content.append({"type": "text", "text": text})
    calls = message.get("tool_calls")
    if calls:
        if type(calls) is not list:
            return None
        for call in <list>calls:
            made = use_of(call, names)
            if made is None:
                return None
            content.append(made)
    stop = read_stop("completions", choice.get("finish_reason"))
    if stop == "end" and calls:
        stop = "tools"
    id, answered = body.get("id"), body.get("model")
    made = messages_usage_of(UsageCounts() if usage is None else usage)
    tier = body.get("service_tier")
    if type(tier) is str and tier in TIERS_FOR_MESSAGES:
        made["service_tier"] = TIERS_FOR_MESSAGES[tier]
    return {
        "id": id if type(id) is str and id else "msg_" + ident,
        "type": "message",
        "role": "assistant",
        "model": answered if type(answered) is str and answered else model,
        "content": content,
        "stop_reason": write_stop("messages", stop),
        "stop_sequence": None,
        "usage": made,
    }
