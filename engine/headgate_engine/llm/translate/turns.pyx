"""Plain turns on the way to Messages and Converse; see turns.pxd.

What is made here, the general translations of headgate.dialect.llm make as well, member by member: the tests compare both.
"""

from headgate_engine.llm.translate.plain cimport text_of
from headgate_engine.llm.translate.readers cimport loads

# Separates the id of a tool call from a signature (headgate.dialect.llm.idents).
cdef str THOUGHT = "__thought__"
# Characters of an id of a tool call that Anthropic and Bedrock take (headgate.dialect.llm.idents).
cdef Py_ssize_t LONGEST_IDENT = 64
# Members of an assistant's message that say nothing when they are null, as clients send answers back.
cdef frozenset NULL_MEMBERS = frozenset(("refusal", "annotations", "function_call", "audio", "reasoning_content"))


cdef bint is_blank(str text) except -1:
    """Return whether a text has no character other than white space."""
    cdef Py_UCS4 char
    for char in text:
        if not char.isspace():
            return False
    return True


cdef bint fits(object ident) except -1:
    """Return whether the vendor takes the id of a tool call as it is."""
    cdef Py_UCS4 char
    if type(ident) is not str or not 0 < len(<str>ident) <= LONGEST_IDENT:
        return False
    for char in <str>ident:
        if not (u"a" <= char <= u"z" or u"A" <= char <= u"Z" or u"0" <= char <= u"9" or char == u"_" or char == u"-"):
            return False
    return THOUGHT not in <str>ident


cdef list text_blocks(object content, bint keep_blank=False):
    """Return the texts of a message's content as blocks of Messages, None if there is anything else in it."""
    cdef list found = []
    cdef str text
    if content is None:
        return found
    if type(content) is str:
        if keep_blank or not is_blank(<str>content):
            found.append({"type": "text", "text": content})
        return found
    if type(content) is not list:
        return None
    for part in <list>content:
        text = text_of(part)
        if text is None:
            return None
        if keep_blank or not is_blank(text):
            found.append({"type": "text", "text": text})
    return found


cdef dict use_block(object call):
    """Return the `tool_use` block for a call of a function in chat completions."""
    cdef object function, name, given
    if type(call) is not dict or len(<dict>call) != 3 or (<dict>call).get("type") != "function" or not fits((<dict>call).get("id")):
        return None
    function = (<dict>call).get("function")
    if type(function) is not dict or len(<dict>function) != 2:
        return None
    name, given = (<dict>function).get("name"), (<dict>function).get("arguments")
    if type(name) is not str or type(given) is not str:
        return None
    try:
        given = loads(given)
    except ValueError:
        return None
    if type(given) is not dict:
        return None
    return {"type": "tool_use", "id": (<dict>call)["id"], "name": name, "input": given}


cdef list assistant_blocks(dict message):
    cdef object calls = message.get("tool_calls")
    cdef list blocks = text_blocks(message.get("content"))
    cdef dict made
    if blocks is None:
        return None
    for name, value in message.items():
        if name != "role" and name != "content" and name != "tool_calls" and (value is not None or name not in NULL_MEMBERS):
            return None
    if calls is None:
        return blocks
    if type(calls) is not list:
        return None
    for call in <list>calls:
        made = use_block(call)
        if made is None:
            return None
        blocks.append(made)
    return blocks


def messages_turn(dict message not None):
    cdef object role = message.get("role")
    cdef list blocks = None
    if role == "assistant":
        blocks = assistant_blocks(message)
    elif role == "user":
        if len(message) == 2:
            blocks = text_blocks(message.get("content"))
    elif role == "tool":
        role, ident, said = "user", message.get("tool_call_id"), message.get("content")
        if len(message) == 3 and fits(ident) and type(said) is str:
            blocks = [{"type": "tool_result", "tool_use_id": ident, "content": said}]
    return None if blocks is None else (role, blocks)


cdef dict converse_block(dict block, bint user, dict names, dict used):
    """Return the block of Converse for a call or a result of a tool."""
    cdef object kind = block.get("type")
    cdef object ident, name, given
    cdef list texts
    if not user and kind == "tool_use":
        ident, name, given = block.get("id"), block.get("name"), block.get("input")
        if len(block) != 4 or type(given) is not dict or type(name) is not str or not fits(ident):
            return None
        name = names.get(name)
        if name is None:
            return None
        used[name] = None
        return {"toolUse": {"toolUseId": ident, "name": name, "input": given}}
    if user and kind == "tool_result":
        ident = block.get("tool_use_id")
        if len(block) != (3 if "content" in block else 2) or not fits(ident):
            return None
        texts = text_blocks(block.get("content"), True)
        if texts is None:
            return None
        for one in texts:
            del (<dict>one)["type"]
        return {"toolResult": {"toolUseId": ident, "content": texts, "status": "success"}}
    return None


def converse_turn(dict message not None, dict names not None, dict used not None):
    cdef object role = message.get("role")
    cdef object content = message.get("content")
    cdef bint user = role == "user"
    cdef list blocks = []
    cdef Py_ssize_t results = 0
    cdef dict made
    cdef str text
    if not user and role != "assistant":
        return None
    if type(content) is str:
        return ([] if is_blank(<str>content) else [{"text": content}]), 0
    if type(content) is not list:
        return None
    for block in <list>content:
        text = text_of(block)
        if text is not None:
            if not is_blank(text):
                blocks.append({"text": text})
            continue
        made = converse_block(<dict>block, user, names, used) if type(block) is dict else None
        if made is None:
            return None
        results += user
        blocks.append(made)
    return blocks, results
