"""The texts of requests and answers; see content_capture.pxd."""

import json

from headgate_engine.context.request cimport RequestContext
from headgate_engine.llm.attempt cimport LlmCall

# Characters of text (and of arguments) that are kept of one answer.
LIMIT = 2097152
PROMPT = "llm.prompt"
ANSWER = ("llm.completion", "llm.toolCalls")
COUNT = "llm.countTokens"
# What stands between the parts of a message.
JOINERS = {"responses": "\n", "gemini": "\n", "gemini_count_tokens": "\n"}
TEXTS = {"embeddings": ("input", "inputText", "texts", "content"), "rerank": ("query", "documents")}
TOOL_USES = ("tool_use", "server_tool_use", "mcp_tool_use")


cdef class CaptureOptions:
    def note(self, variables):
        """Another expression reads these."""
        self.prompt = self.prompt or PROMPT in variables
        self.answer = self.answer or not variables.isdisjoint(ANSWER)
        self.count = self.count or COUNT in variables


# -- prompts -----------------------------------------------------------------------------------------------------------
cdef str text_in(object value, str joiner):
    """The text of a content: a string, a part, or parts."""
    if isinstance(value, str):
        return <str>value
    if isinstance(value, dict):
        found = (<dict>value).get("text")
        return found if isinstance(found, str) and (<dict>value).get("thought") is not True else ""
    if isinstance(value, list):
        return joiner.join([text for one in <list>value if (text := text_in(one, joiner))])
    return ""


cdef int say(list found, object role, str text) except -1:
    found.append({"role": role if isinstance(role, str) else "user", "content": text})
    return 0


cdef int add_messages(list found, object messages, str member, str joiner) except -1:
    if isinstance(messages, list):
        for one in <list>messages:
            if isinstance(one, dict):
                say(found, (<dict>one).get("role"), text_in((<dict>one).get(member), joiner))
    return 0


cdef int add_items(list found, dict told) except -1:
    """Input of responses: a text, or items of which messages count."""
    given = told.get("input")
    if isinstance(told.get("instructions"), str):
        say(found, "system", told["instructions"])
    if isinstance(given, str):
        return say(found, "user", given)
    if isinstance(given, list):
        for one in <list>given:
            if isinstance(one, dict) and one.get("type", "message") == "message":
                say(found, one.get("role"), text_in(one.get("content"), "\n"))
    return 0


cdef int add_texts(list found, dict told, tuple members) except -1:
    for name in members:
        value = told.get(name)
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, (str, dict)):
                say(found, "user", text_in(one, " "))
    return 0


cdef list prompt_of(str format, bytes body):
    cdef list found = []
    cdef str joiner = JOINERS.get(format, " ")
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    members = TEXTS.get(format)
    if members is not None:
        add_texts(found, told, members)
    elif format == "responses" or "messages" not in told and "input" in told:
        add_items(found, told)
    elif "contents" in told or format.startswith("gemini"):
        system = told.get("systemInstruction", told.get("system_instruction"))
        if isinstance(system, dict):
            say(found, "system", text_in(system.get("parts"), "\n"))
        add_messages(found, told.get("contents"), "parts", "\n")
    elif "messages" in told:
        if told.get("system"):
            say(found, "system", text_in(told["system"], "\n"))
        add_messages(found, told["messages"], "content", joiner)
    else:
        add_texts(found, told, ("prompt", "inputText"))
    return found


cdef list prompt_now(RequestContext ctx):
    cdef LlmCall call = <LlmCall>ctx.llm
    cdef bytes body
    if call is None or call.wanted is None or call.object_end < 0 or call.opaque:
        return None
    body = ctx.body if call.sent is None else call.sent
    if body is None:
        return None
    if call.prompt_body is not body:
        call.prompt, call.prompt_body = prompt_of(call.format, body), body
    return call.prompt


cdef object count_of(bytes body):
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return -1
    for name in ("input_tokens", "totalTokens", "inputTokens"):
        if isinstance(told, dict) and type(told.get(name)) is int:
            return told[name]
    return -1


# -- answers -----------------------------------------------------------------------------------------------------------
cdef object as_arguments(object given):
    """Arguments as values. Text that is no JSON (models can write anything, and a stream may be cut) stays a string."""
    if isinstance(given, list):
        given = "".join(given)
    if not isinstance(given, str):
        return given
    if not given.strip():
        return {}
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given


cdef class CapturedAnswer:
    """format: the client's, or the shape of what is passed through ("invoke")."""

    def __init__(self, str format not None, Py_ssize_t limit=LIMIT):
        self.format = format
        self.limit = limit
        self.texts, self.calls = {}, {}

    cdef int whole(self, bytes body) except -1:
        self.body = body
        self.ended = True
        return 0

    cdef int _add(self, object choice, object text) except -1:
        cdef list pieces = self.texts.get(choice)
        if pieces is None:
            pieces = self.texts[choice] = []
        if isinstance(text, str) and self.length < self.limit:
            pieces.append((<str>text)[:self.limit - self.length])
            self.length += len(<str>text)
        return 0

    def _call(self, key, ident, name, arguments):
        """A tool call begins or continues."""
        cdef list call = self.calls.get(key)
        if call is None:
            call = self.calls[key] = ["", "", []]
        if isinstance(ident, str) and ident:
            call[0] = ident
        if isinstance(name, str) and name:
            call[1] = name
        if isinstance(arguments, str):
            if isinstance(call[2], list) and self.length < self.limit:
                (<list>call[2]).append(arguments[:self.limit - self.length])
                self.length += len(arguments)
        elif arguments is not None:
            call[2] = arguments

    cdef int event(self, str name, bytes data) except -1:
        try:
            told = json.loads(data)
        except (ValueError, RecursionError):
            return 0
        if isinstance(told, dict):
            read = EVENTS.get(self.format, _any_event)
            try:
                read(self, name or told.get("type"), told)
            except (TypeError, AttributeError, KeyError):
                pass         # not what its format says: the client is told, expressions have what was read
        return 0

    cdef int _read(self) except -1:
        """Reads a whole answer when somebody asks."""
        cdef bytes body = self.body
        self.body = None
        if body is None:
            return 0
        try:
            told = json.loads(body)
            if isinstance(told, dict):
                REPLIES.get(self.format, _any_reply)(self, told)
        except (ValueError, RecursionError, TypeError, AttributeError, KeyError):
            pass
        return 0

    def completion(self):
        """The text of each choice."""
        self._read()
        return ["".join(self.texts[key]) for key in sorted(self.texts, key=_order)]

    def tool_calls(self):
        """The calls in their order."""
        self._read()
        return [{"id": ident, "name": name, "arguments": as_arguments(given)}
                for ident, name, given in self.calls.values()]

    # -- Python face ---------------------------------------------------------------------------------------------------


def _order(choice):
    """Choices by number."""
    return choice if isinstance(choice, int) else 0


def _completions_call(answer, choice, position, call):
    inner = call.get("function")
    if inner is None:
        inner = call.get("custom") or {}
    answer._call((choice, call.get("index", position)), call.get("id"), inner.get("name"),
                 inner.get("arguments", inner.get("input")))


def _completions(CapturedAnswer answer, told, member):
    for at, choice in enumerate(told.get("choices") or ()):
        index = choice.get("index", at)
        said = choice.get(member) or {}
        answer._add(index, text_in(said.get("content"), "") or choice.get("text"))
        for position, call in enumerate(said.get("tool_calls") or ()):
            _completions_call(answer, index, position, call)
        old = said.get("function_call")
        if old:
            answer._call((index, "function"), None, old.get("name"), old.get("arguments"))


def _completions_reply(answer, told):
    """chat.completion"""
    _completions(answer, told, "message")


def _completions_event(answer, name, told):
    """chat.completion.chunk"""
    _completions(answer, told, "delta")


def _messages_reply(CapturedAnswer answer, told):
    """message"""
    answer._add(0, None)
    for at, block in enumerate(told["content"]):
        if block.get("type") == "text":
            answer._add(0, block.get("text"))
        elif block.get("type") in TOOL_USES:
            answer._call(at, block.get("id"), block.get("name"), block.get("input"))


def _messages_event(CapturedAnswer answer, name, told):
    """content_block_start, content_block_delta"""
    answer._add(0, None)
    if name == "content_block_start":
        block = told["content_block"]
        if block.get("type") == "text":
            answer._add(0, block.get("text"))
        elif block.get("type") in TOOL_USES:
            answer._call(told.get("index"), block.get("id"), block.get("name"), block.get("input") or None)
    elif name == "content_block_delta":
        delta = told["delta"]
        if delta.get("type") == "text_delta":
            answer._add(0, delta.get("text"))
        elif delta.get("type") == "input_json_delta":
            answer._call(told.get("index"), None, None, delta.get("partial_json"))


def _responses_reply(CapturedAnswer answer, told):
    """response"""
    answer._add(0, None)
    for at, item in enumerate(told["output"]):
        _item(answer, at, item)
        if item.get("type") == "message":
            for part in item.get("content") or ():
                if part.get("type") == "output_text":
                    answer._add(0, part.get("text"))


def _item(answer, at, item):
    if item.get("type") in ("function_call", "custom_tool_call", "mcp_call"):
        ident = item.get("call_id") or item.get("id")
        answer._call(at, ident, item.get("name"), item.get("arguments", item.get("input")))


def _responses_event(CapturedAnswer answer, name, told):
    """Deltas of texts and arguments; an item that is done has all of its arguments."""
    at = told.get("output_index")
    answer._add(0, None)
    if name == "response.output_text.delta":
        answer._add(0, told.get("delta"))
    elif name == "response.output_item.added":
        _item(answer, at, told["item"])
    elif name in ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
                  "response.mcp_call_arguments.delta"):
        answer._call(at, None, None, told.get("delta"))
    elif name == "response.output_item.done":
        if (<dict>answer.calls).pop(at, None) is not None or told["item"].get("type") != "message":
            _item(answer, at, told["item"])


def _gemini_reply(CapturedAnswer answer, told):
    """GenerateContentResponse, whole or as an event."""
    for at, candidate in enumerate(told.get("candidates") or ()):
        index = candidate.get("index", at)
        answer._add(index, None)
        for part in (candidate.get("content") or {}).get("parts") or ():
            if isinstance(part.get("text"), str) and part.get("thought") is not True:
                answer._add(index, part["text"])
            call = part.get("functionCall")
            if call:
                answer._call(len(answer.calls), call.get("id"), call.get("name"), call.get("args") or {})


def _gemini_event(answer, name, told):
    """One event of a stream."""
    _gemini_reply(answer, told)


def _converse_reply(CapturedAnswer answer, told):
    """Bedrock's own."""
    answer._add(0, None)
    for at, block in enumerate(told["output"]["message"]["content"]):
        answer._add(0, block.get("text"))
        call = block.get("toolUse")
        if call:
            answer._call(at, call.get("toolUseId"), call.get("name"), call.get("input"))


def _converse_event(CapturedAnswer answer, name, told):
    """contentBlockStart, contentBlockDelta; some models wrap them once more."""
    told = told.get(name, told)
    at = told.get("contentBlockIndex")
    answer._add(0, None)
    if name == "contentBlockStart":
        call = (told.get("start") or {}).get("toolUse")
        if call:
            answer._call(at, call.get("toolUseId"), call.get("name"), None)
    elif name == "contentBlockDelta":
        delta = told["delta"]
        answer._add(0, delta.get("text"))
        if delta.get("toolUse"):
            answer._call(at, None, None, delta["toolUse"].get("input"))


def _any_reply(answer, told):
    """The texts of a body of unknown format, found by its members."""
    if "choices" in told:
        _completions_reply(answer, told)
    elif "candidates" in told:
        _gemini_reply(answer, told)
    elif isinstance(told.get("output"), dict):
        _converse_reply(answer, told)
    elif isinstance(told.get("output"), list):
        _responses_reply(answer, told)
    elif isinstance(told.get("content"), list):
        _messages_reply(answer, told)


def _any_event(answer, name, told):
    """The same for an event."""
    if "choices" in told:
        _completions_event(answer, name, told)
    elif "candidates" in told:
        _gemini_reply(answer, told)
    elif isinstance(name, str) and name.startswith("response."):
        _responses_event(answer, name, told)
    elif isinstance(told.get("type"), str):
        _messages_event(answer, told["type"], told)
    elif len(told) == 1 or isinstance(name, str) and name.startswith("contentBlock"):
        _converse_event(answer, name if isinstance(name, str) and name else next(iter(told)), told)


def _nothing(answer, *told):
    """Formats whose answers say no text."""


REPLIES = {"completions": _completions_reply, "messages": _messages_reply, "responses": _responses_reply,
           "gemini": _gemini_reply, "converse": _converse_reply, "embeddings": _nothing, "rerank": _nothing,
           "count_tokens": _nothing, "gemini_count_tokens": _nothing}
EVENTS = {"completions": _completions_event, "messages": _messages_event, "responses": _responses_event,
          "gemini": _gemini_event, "converse": _converse_event}


def prompts(str format not None, bytes body not None):
    """Python face of prompt_of()."""
    return prompt_of(format, body)


def counted(bytes body not None):
    """Python face of count_of()."""
    return count_of(body)
