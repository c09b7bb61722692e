"""The clients' halves of stream translation. A delta is one formatted line around one encoded string."""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

import json

import orjson

from headgate_engine.llm.translate.counts cimport UsageCounts
from headgate_engine.llm.translate.evidence cimport Citation, RanTool
from headgate_engine.llm.translate.free_input cimport FreeInput
from headgate_engine.llm.translate.fault_kinds cimport status_of
from headgate_engine.llm.translate.stops cimport write_stop
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.llm.translate.counts import PARTS
from headgate_engine.llm.translate.evidence import chat_annotation

cdef object fast_dumps = orjson.dumps
cdef object slow_dumps = json.dumps
# Names of tools of vendors that run code.
cdef frozenset SEARCHES = frozenset(("web_search", "web_fetch"))
cdef str LATE = "arguments of a tool call that had ended"


cdef bytes dumps(object value):
    try:
        return fast_dumps(value)
    except TypeError:
        # Half a surrogate pair, an integer over 64 bits, or deep nesting.
        return (<str>slow_dumps(value, separators=(",", ":"), allow_nan=False)).encode()


def dump_json(value):
    """Compact JSON."""
    return dumps(value)


def completions_usage_of(UsageCounts usage not None):
    """`usage` of a chat completion."""
    details = {"cached_tokens": usage.cached}
    made = {"reasoning_tokens": usage.reasoning}
    if usage.written:
        details["cache_write_tokens"] = usage.written
    if usage.parts is not None:
        for at, tokens in enumerate(usage.parts):
            if tokens > 0:
                (details if at < 3 else made)[PARTS[at % 3]] = tokens
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": max(usage.total, usage.input + usage.output),
        "prompt_tokens_details": details,
        "completion_tokens_details": made,
    }


def messages_usage_of(UsageCounts usage not None):
    """`usage` of a message."""
    fresh = usage.input - usage.cached - usage.written
    return {
        "input_tokens": fresh if fresh > 0 else 0,
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
    }


def responses_usage_of(UsageCounts usage not None):
    """`usage` of a response object."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": max(usage.total, usage.input + usage.output),
    }


cdef Py_ssize_t characters(const char* p, Py_ssize_t n) noexcept nogil:
    """How many characters a text in UTF-8 has."""
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t found = n
    cdef uint64_t word
    while n - at >= 8:
        memcpy(&word, p + at, 8)
        # Of eight bytes most are ASCII: none has its high bit.
        if word & <uint64_t>0x8080808080808080:
            found -= continued(p + at, 8)
        at += 8
    return found - continued(p + at, n - at)


cdef Py_ssize_t continued(const char* p, Py_ssize_t n) noexcept nogil:
    """How many bytes go on with a character."""
    cdef Py_ssize_t at
    cdef Py_ssize_t found = 0
    for at in range(n):
        found += p[at] & 0xC0 == 0x80
    return found


cdef class OpenTool:
    pass


cdef class Writer:
    """What a reader calls: the order of things is here, the words of each format are in the classes below."""

    def __init__(self, str ident not None, str model not None, long long created, dict names not None,
                 dict extra not None):
        self.ident = ident
        self.model = model
        self.created = created
        self.names = names
        self.configure(extra)

    def __cinit__(self):
        self.out = ByteBuffer()
        self.tools = {}
        self.id = ""
        self.model = ""
        self.ident = ""

    cdef int configure(self, dict extra) except -1:
        """Take what only one format needs."""
        return 0

    def take(self):
        """What was written since the last call."""
        return self.out.take() if self.out.length else b""

    cdef int _put(self, bytes piece) except -1:
        return self.out.append(piece, len(piece))

    cdef int _encode(self, BlockKind kind, str delta) except -1:
        cdef bytes encoded = dumps(delta)
        self.spoke = True
        return self._say(kind, encoded, len(encoded), delta)

    cdef int start(self, str id, str model) except -1:
        if self.started:
            return 0
        self.started = True
        self.answered = model or None
        return self._begin(id, model if model else self.model)

    cdef int _ensure_started(self) except -1:
        return 0 if self.started else self.start("", "")

    cdef int text(self, str delta) except -1:
        if not delta:
            return 0
        self._encode(BLOCK_TEXT, delta)
        self.said = self.said + len(delta)
        return 0

    cdef int quoted_text(self, const char* p, Py_ssize_t n, str delta) except -1:
        if n <= 2:
            return 0
        self.spoke = True
        self._say(BLOCK_TEXT, p, n, delta)
        self.said = self.said + (characters(p + 1, n - 2) if delta is None else len(delta))
        return 0

    cdef int refusal(self, str delta) except -1:
        if not delta:
            return 0
        self.refused = True
        return self._encode(BLOCK_REFUSAL, delta)

    cdef int thinking(self, str delta) except -1:
        if not delta:
            return 0
        if self.signed:
            # A signature covers one thought.
            self.signed = False
            self._close_block()
        return self._encode(BLOCK_THINKING, delta)

    cdef int quoted_thinking(self, const char* p, Py_ssize_t n, str delta) except -1:
        if n <= 2:
            return 0
        if self.signed:
            self.signed = False
            self._close_block()
        self.spoke = True
        return self._say(BLOCK_THINKING, p, n, delta)

    cdef int signature(self, str delta) except -1:
        if not delta:
            return 0
        self._encode(BLOCK_SIGNATURE, delta)
        self.signed = True
        return 0

    cdef int redacted(self, str data) except -1:
        self._ensure_started()
        self.spoke = True
        return self._redact(data)

    cdef int cite(self, Citation citation) except -1:
        if citation is None:
            return 0
        self._ensure_started()
        return self._cite(citation)

    cdef int ran(self, RanTool tool) except -1:
        if tool is None:
            return 0
        self._ensure_started()
        self.spoke = True
        return self._ran(tool)

    cdef int probs(self, list tokens) except -1:
        if not tokens or not self.probs_wanted:
            return 0
        self._ensure_started()
        return self._probs(tokens)

    cdef int image(self, str url) except -1:
        if not url:
            return 0
        self._ensure_started()
        self.spoke = True
        return self._image(url)

    cdef int sound(self, str media_type, str data) except -1:
        if not data:
            return 0
        self._ensure_started()
        self.spoke = True
        return self._sound(media_type, data)

    cdef bint tool(self, object key, str id, str name) except -1:
        return self._tool(key, id, name, False)

    cdef bint custom_tool(self, object key, str id, str name) except -1:
        return self._tool(key, id, name, True)

    cdef bint _tool(self, object key, str id, str name, bint free) except -1:
        cdef OpenTool tool
        self._ensure_started()
        self.spoke = True
        if key in self.tools:
            return False
        tool = OpenTool.__new__(OpenTool)
        tool.index = len(self.tools)
        tool.id = id if id else f"call_{self.ident}_{tool.index}"
        tool.name = self.names.get(name, name)
        tool.parts = []
        tool.free = free
        tool.custom = self.tells_customs and (free or self.customs is not None and tool.name in self.customs)
        if tool.custom and not free:
            tool.input = FreeInput()
        self._open_tool(tool)
        self.tools[key] = tool
        return True

    cdef int sign_tool(self, object key, str signature) except -1:
        """Formats that have already written their calls ignore it."""
        return 0

    cdef int arguments(self, object key, str delta) except -1:
        cdef bytes encoded
        if not delta:
            return 0
        encoded = dumps(delta)
        return self.quoted_arguments(key, encoded, len(encoded), delta)

    cdef int quoted_arguments(self, object key, const char* p, Py_ssize_t n, str delta) except -1:
        cdef OpenTool tool = self.tools.get(key)
        if tool is None or n <= 2:
            return 0
        if tool.closed:
            raise ValueError(LATE)
        if tool.custom or tool.free:
            return self._free_arguments(tool, p[1:n - 1].decode("utf-8") if delta is None else delta)
        tool.any = True
        return self._add_arguments(tool, delta, p, n)

    cdef int _free_arguments(self, OpenTool tool, str text) except -1:
        cdef str begin = "" if tool.any else '{"input":"'
        tool.any = True
        if not tool.custom:
            return self._tell(tool, begin + dumps(text)[1:-1].decode())
        return self._tell(tool, text if tool.free else tool.input.feed(text))

    cdef int _tell(self, OpenTool tool, str text) except -1:
        cdef bytes encoded
        if not text:
            return 0
        encoded = dumps(text)
        return self._add_arguments(tool, text, encoded, len(encoded))

    cdef int close(self, object key) except -1:
        cdef OpenTool tool = None if key is None else self.tools.get(key)
        if tool is None:
            return self._end_block()
        if tool.closed:
            return 0
        if tool.custom:
            if tool.input is not None:
                self._tell(tool, tool.input.end())
        elif tool.free:
            self._tell(tool, '"}' if tool.any else '{"input":""}')
        elif not tool.any:
            self.arguments(key, "{}")
        tool.closed = True
        return self._close_tool(tool)

    cdef int _close_all(self) except -1:
        self._close_block()
        for key in list(self.tools):
            self.close(key)
        return 0

    cdef int stop(self, str stop, str sequence) except -1:
        self.stopped = stop
        self.sequence = sequence
        return 0

    cdef int finish(self) except -1:
        if self.finished:
            return 0
        self._ensure_started()
        self.ending = True
        self._close_all()
        self._end(self._ended())
        self.finished = True
        return 0

    cdef int fault(self, str kind, str message) except -1:
        if self.finished:
            return 0
        self.finished = True
        self.fault_message = message
        return self._tell_fault(kind, message)

    cdef int failed(self, str kind, str code, int status, str message) except -1:
        self.fault_kind, self.fault_code = kind, code
        self.fault_status = status if status else status_of(kind, code)
        return self.fault(kind, message)

    cdef str _ended(self):
        """The stop. A reply with tool calls wants them answered, whatever word its provider used."""
        if self.stopped is None or self.stopped == "end":
            return "tools" if self.tools else "end"
        return self.stopped

    cdef int _event(self, str name, dict members) except -1:
        """An event with a name, which its data repeats."""
        self._put(b"event: " + name.encode() + b"\ndata: " + dumps({"type": name, **members}) + b"\n\n")
        return 0

    cdef int _begin(self, str id, str model) except -1:
        raise NotImplementedError

    cdef int _say(self, BlockKind kind, const char* p, Py_ssize_t n, str delta) except -1:
        raise NotImplementedError

    cdef int _redact(self, str data) except -1:
        return 0

    cdef int _cite(self, Citation citation) except -1:
        return 0

    cdef int _ran(self, RanTool tool) except -1:
        # Of a search the citations are told.
        if tool.name not in SEARCHES:
            self.untold = True
        return 0

    cdef int _probs(self, list tokens) except -1:
        return 0

    cdef int _image(self, str url) except -1:
        self.untold = True
        return 0

    cdef int _sound(self, str media_type, str data) except -1:
        self.untold = True
        return 0

    cdef int _close_block(self) except -1:
        return 0

    cdef int _end_block(self) except -1:
        return self._close_block()

    cdef int _open_tool(self, OpenTool tool) except -1:
        raise NotImplementedError

    cdef int _add_arguments(self, OpenTool tool, str delta, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError

    cdef int _close_tool(self, OpenTool tool) except -1:
        return 0

    cdef int _end(self, str stop) except -1:
        raise NotImplementedError

    cdef int _tell_fault(self, str kind, str message) except -1:
        raise NotImplementedError


# Member of a delta by what it says.
cdef tuple members = (b'"content":', b'"refusal":', b'"reasoning_content":', b'"reasoning_signature":')


cdef class CompletionsWriter(Writer):
    """chat.completion.chunk events."""

    def __cinit__(self):
        self.tells_customs = True

    cdef int configure(self, dict extra) except -1:
        self.include_usage = bool(extra.get("include_usage"))
        self.sound_of = extra.get("sound_of")
        self.thoughts = []
        self.call = ByteBuffer()
        return 0

    cdef int _begin(self, str id, str model) except -1:
        self.first = True
        self.id = id if id else "chatcmpl-" + self.ident
        encoded = dumps({"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": model})
        self.head = b"data: " + encoded[:len(encoded) - 1] + b',"choices":['
        return 0

    cdef int _delta(self, bytes member, const char* p, Py_ssize_t n) except -1:
        """Write a chunk whose delta has one member. p: its value, as JSON."""
        cdef ByteBuffer out = self.out
        self._put(self.head)
        if self.first:
            self.first = False
            out.append(b'{"index":0,"delta":{"role":"assistant",', 39)
        else:
            out.append(b'{"index":0,"delta":{', 20)
        self._put(member)
        out.append(p, n)
        return out.append(b'},"finish_reason":null}]}\n\n', 27)

    cdef int _say(self, BlockKind kind, const char* p, Py_ssize_t n, str delta) except -1:
        cdef bytes told
        self._ensure_started()
        if kind == BLOCK_THINKING:
            self.thoughts.append(p[1:n - 1].decode("utf-8") if delta is None else delta)
        elif kind == BLOCK_SIGNATURE:
            # As LiteLLM tells it, too: its clients put a reply's blocks together, and send them back.
            block = {"type": "thinking", "thinking": "".join(self.thoughts), "signature": delta}
            self.thoughts.clear()
            if self.one_signed:
                # Clients put what they get of a member together: two signatures would make one that is none.
                told = dumps([block])
                return self._delta(b'"thinking_blocks":', told, len(told))
            self.one_signed = True
            told = p[:n] + b',"thinking_blocks":' + dumps([block])
            return self._delta(<bytes>members[<int>BLOCK_SIGNATURE], told, len(told))
        return self._delta(<bytes>members[<int>kind], p, n)

    cdef int _redact(self, str data) except -1:
        cdef bytes told = dumps([{"type": "redacted_thinking", "data": data}])
        return self._delta(b'"thinking_blocks":', told, len(told))

    cdef int _cite(self, Citation citation) except -1:
        cdef bytes told
        annotation = chat_annotation(citation)
        if annotation is None:
            return 0
        told = dumps([annotation])
        return self._delta(b'"annotations":', told, len(told))

    cdef int _probs(self, list tokens) except -1:
        self._put(self.head)
        self._put(b'{"index":0,"delta":{},"logprobs":' + dumps({"content": tokens, "refusal": None}))
        self._put(b',"finish_reason":null}]}\n\n')
        return 0

    cdef int _image(self, str url) except -1:
        cdef bytes told = dumps([{"type": "image_url", "image_url": {"url": url}, "index": self.images}])
        self.images += 1
        return self._delta(b'"images":', told, len(told))

    cdef int _sound(self, str media_type, str data) except -1:
        cdef bytes told
        made = None if self.sound_of is None else self.sound_of(media_type, data)
        if made is None:
            self.untold = True
            return 0
        told = dumps({"id": "audio_" + self.ident, "data": made})
        return self._delta(b'"audio":', told, len(told))

    cdef int _open_tool(self, OpenTool tool) except -1:
        cdef str kind = "custom" if tool.custom else "function"
        cdef bytes call = dumps([{"index": tool.index, "id": tool.id, "type": kind,
                                  kind: {"name": tool.name, "input" if tool.custom else "arguments": ""}}])
        return self._delta(b'"tool_calls":', call, len(call))

    cdef int _add_arguments(self, OpenTool tool, str delta, const char* p, Py_ssize_t n) except -1:
        cdef ByteBuffer call = self.call
        call.clear()
        call.append(b'[{"index":', 10)
        call.append_uint(<unsigned long long>tool.index)
        if tool.custom:
            call.append(b',"custom":{"input":', 19)
        else:
            call.append(b',"function":{"arguments":', 25)
        call.append(p, n)
        call.append(b"}}]", 3)
        return self._delta(b'"tool_calls":', call.data, call.length)

    cdef int _end(self, str stop) except -1:
        tier = b"" if self.service_tier is None else b',"service_tier":' + dumps(self.service_tier)
        self._put(self.head)
        self._put(b'{"index":0,"delta":{"role":"assistant","content":""}' if self.first else
                        b'{"index":0,"delta":{}')
        self._put(b',"finish_reason":"' + write_stop("completions", stop).encode() + b'"}]' + tier + b"}\n\n")
        if self.include_usage and self.usage is not None:
            self._put(self.head)
            self._put(b'],"usage":' + dumps(completions_usage_of(self.usage)) + tier + b"}\n\n")
        self._put(b"data: [DONE]\n\n")
        return 0

    cdef int _tell_fault(self, str kind, str message) except -1:
        error = {"error": {"message": message, "type": kind, "param": None, "code": self.fault_code}}
        self._put(b"data: " + dumps(error) + b"\n\n")
        return 0
