# cython: boundscheck=False
"""JSON peeks: what each class watches, and what it makes of it. boundscheck is off: the spans are those of the scan."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr, memset

from headgate_engine.peek.scan cimport (
    DEPTH_LIMIT, F_DEPTH, F_NONE, J_ARRAY, J_NONE, J_NUMBER, J_OBJECT, J_STRING, J_TRUE, Field, Found, Scan, scan_text,
    skip_blanks)

import json

from headgate_engine.peek import scan as _scan

MAX_DEPTH = DEPTH_LIMIT

# What is watched: index -> path. An object stands before its members.
cdef enum:
    C_MODEL = 1
    C_STREAM
    C_STREAM_OPTIONS
    C_INCLUDE_USAGE

CHAT_FIELDS = {
    C_MODEL: ("model",),
    C_STREAM: ("stream",),
    C_STREAM_OPTIONS: ("stream_options",),
    C_INCLUDE_USAGE: ("stream_options", "include_usage"),
}

# Chat completions say prompt and completion, messages, responses and embeddings of some providers input and output;
# details are told in an object of their own or, by a few, beside the sums. Gemini has names of its own.
cdef enum:
    U_OUTER = 1
    U_USAGE
    U_MODEL
    U_CHOICES
    U_ERROR
    U_PROMPT
    U_INPUT
    U_COMPLETION
    U_OUTPUT
    U_TOTAL
    U_CACHED
    U_CACHE_READ
    U_CACHE_WRITE
    U_REASONING
    U_PROMPT_DETAILS
    U_INPUT_DETAILS
    U_COMPLETION_DETAILS
    U_OUTPUT_DETAILS
    U_PROMPT_CACHED
    U_INPUT_CACHED
    U_COMPLETION_REASONING
    U_OUTPUT_REASONING


def _usage_table(*outer):
    """What is watched when `usage` stands at the top, or within a member of it."""
    usage = (*outer, "usage")
    return {
        U_OUTER: outer or ("response",),
        U_USAGE: usage,
        U_MODEL: (*outer, "model"),
        U_CHOICES: ("choices",),
        U_ERROR: ("error",),
        U_PROMPT: (*usage, "prompt_tokens"),
        U_INPUT: (*usage, "input_tokens"),
        U_COMPLETION: (*usage, "completion_tokens"),
        U_OUTPUT: (*usage, "output_tokens"),
        U_TOTAL: (*usage, "total_tokens"),
        U_CACHED: (*usage, "cached_tokens"),
        U_CACHE_READ: (*usage, "cache_read_input_tokens"),
        U_CACHE_WRITE: (*usage, "cache_creation_input_tokens"),
        U_REASONING: (*usage, "reasoning_tokens"),
        U_PROMPT_DETAILS: (*usage, "prompt_tokens_details"),
        U_INPUT_DETAILS: (*usage, "input_tokens_details"),
        U_COMPLETION_DETAILS: (*usage, "completion_tokens_details"),
        U_OUTPUT_DETAILS: (*usage, "output_tokens_details"),
        U_PROMPT_CACHED: (*usage, "prompt_tokens_details", "cached_tokens"),
        U_INPUT_CACHED: (*usage, "input_tokens_details", "cached_tokens"),
        U_COMPLETION_REASONING: (*usage, "completion_tokens_details", "reasoning_tokens"),
        U_OUTPUT_REASONING: (*usage, "output_tokens_details", "reasoning_tokens"),
    }


USAGE_FIELDS = _usage_table()
GEMINI_USAGE = USAGE_FIELDS | {
    U_USAGE: ("usageMetadata",),
    U_MODEL: ("modelVersion",),
} | {index: ("usageMetadata", name) for index, name in (
    (U_PROMPT, "promptTokenCount"), (U_INPUT, "inputTokenCount"), (U_COMPLETION, "candidatesTokenCount"),
    (U_OUTPUT, "outputTokenCount"), (U_TOTAL, "totalTokenCount"), (U_CACHED, "cachedContentTokenCount"),
    (U_CACHE_READ, "cacheReadTokenCount"), (U_CACHE_WRITE, "cacheWriteTokenCount"),
    (U_REASONING, "thoughtsTokenCount"), (U_PROMPT_DETAILS, "prompt_details"), (U_INPUT_DETAILS, "input_details"),
    (U_COMPLETION_DETAILS, "completion_details"), (U_OUTPUT_DETAILS, "output_details"))
} | {index: ("usageMetadata", *path) for index, path in (
    (U_PROMPT_CACHED, ("prompt_details", "cached")), (U_INPUT_CACHED, ("input_details", "cached")),
    (U_COMPLETION_REASONING, ("completion_details", "reasoning")),
    (U_OUTPUT_REASONING, ("output_details", "reasoning")))
}

RPC_FIELDS = {
    R_JSONRPC: ("jsonrpc",),
    R_METHOD: ("method",),
    R_ID: ("id",),
    R_PARAMS: ("params",),
    R_RESULT: ("result",),
    R_ERROR: ("error",),
    R_NAME: ("params", "name"),
    R_URI: ("params", "uri"),
    R_VERSION: ("params", "protocolVersion"),
    R_TASK: ("params", "taskId"),
    R_META: ("params", "_meta"),
    R_META_VERSION: ("params", "_meta", "io.modelcontextprotocol/protocolVersion"),
    R_META_CAPABILITIES: ("params", "_meta", "io.modelcontextprotocol/clientCapabilities"),
    R_RESULT_TASK_ID: ("result", "taskId"),
    R_RESULT_TASK: ("result", "task"),
    R_RESULT_TASK_OWN_ID: ("result", "task", "taskId"),
    R_RESULT_CURSOR: ("result", "nextCursor"),
}

cdef Field chat_fields[FIELDS]
cdef Field usage_fields[4][FIELDS]         # by UsagePlace
cdef Field rpc_fields[FIELDS]
cdef list names = []           # keeps the names that Field points at


cdef int _fill(table, Field* fields) except -1:
    """The flat C shadow of a table."""
    places = {(): 0}
    for index, path in table.items():
        if index != len(places) or index >= FIELDS:
            raise AssertionError("a table of watched members counts up from 1")
        name = path[len(path) - 1].encode()
        names.append(name)
        fields[<int>index].name = name
        fields[<int>index].name_len = len(name)
        fields[<int>index].parent = places[path[:len(path) - 1]]
        places[path] = index
    return 0


_fill(CHAT_FIELDS, chat_fields)
_fill(USAGE_FIELDS, usage_fields[USAGE_AT_TOP])
_fill(_usage_table("message"), usage_fields[USAGE_IN_MESSAGE])
_fill(_usage_table("response"), usage_fields[USAGE_IN_RESPONSE])
_fill(GEMINI_USAGE, usage_fields[USAGE_OF_GEMINI])
_fill(RPC_FIELDS, rpc_fields)


class PeekError(ValueError):
    """The text is not JSON; `offset` is the byte where that shows."""

    def __init__(self, reason, offset):
        super().__init__(f"{reason} at byte {offset}")
        self.offset = offset


class DepthError(PeekError):
    """The text may be JSON, but is nested deeper than allowed."""


cdef class ObjectPeek:
    def __init__(self, int max_depth=DEFAULT_DEPTH):
        if not 1 <= max_depth <= MAX_DEPTH:
            raise ValueError(f"a depth lies between 1 and {MAX_DEPTH}")
        self.max_depth = max_depth

    def __cinit__(self):
        # Also for those who make one without __init__.
        self.max_depth = DEFAULT_DEPTH
        self.object_end = -1
        self.count = 1

    cdef int scan(self, const char* p, Py_ssize_t n) except -1:
        cdef Scan s
        memset(self.found, 0, self.count * sizeof(Found))
        self.kept = None
        self.object_end = -1
        s.text = <const uint8_t*>p
        s.length = n
        s.fields, s.count, s.max_depth, s.found = self.fields, self.count, self.max_depth, self.found
        s.duplicate = s.empty = False
        s.fault = F_NONE
        if scan_text(&s) < 0:
            self._forget()
            raise (DepthError if s.fault == F_DEPTH else PeekError)(_scan.FAULTS[s.fault], s.fault_at)
        self.text = p
        self.kind = self.found[0].kind
        self.empty = s.empty
        self.duplicate = s.duplicate
        if self.kind == J_OBJECT or self.kind == J_ARRAY:
            self.object_end = self.found[0].stop - 1
        self._read()
        return 0

    cdef void _forget(self) noexcept:
        memset(self.found, 0, self.count * sizeof(Found))
        self.text = NULL
        self.kept = None
        self.kind = J_NONE
        self.object_end = -1
        self.empty = self.duplicate = False
        self._read()

    cdef void _read(self) noexcept:
        """Sets the fields of the class from what was found."""

    cdef bytes string_at(self, Py_ssize_t start, Py_ssize_t stop):
        """The decoded string whose raw form, quotes included, is start..stop; lone surrogates as three bytes."""
        if memchr(self.text + start, 92, stop - start) == NULL:
            return self.text[start + 1:stop - 1]
        return json.loads(self.text[start:stop]).encode("utf-8", "surrogatepass")

    cdef str _text_of(self, int field):
        """For callers from Python: the decoded string, None when it is none."""
        if self.kept is None or self.found[field].kind != J_STRING:
            return None
        return self.string_at(self.found[field].start, self.found[field].stop).decode("utf-8", "surrogatepass")

    cdef int64_t int_of(self, int field) noexcept nogil:
        """A whole number of up to 18 digits, -1 for anything else."""
        cdef const Found* found = &self.found[field]
        cdef int64_t value = 0
        cdef Py_ssize_t at
        if found.kind != J_NUMBER or found.stop - found.start > 18:
            return -1
        for at in range(found.start, found.stop):
            if not 48 <= self.text[at] <= 57:
                return -1
            value = value * 10 + (self.text[at] - 48)
        return value

    @property
    def is_object(self):
        return self.kind == J_OBJECT

    @property
    def is_array(self):
        return self.kind == J_ARRAY


cdef class ChatPeek(ObjectPeek):
    def __cinit__(self):
        self.fields = chat_fields
        self.count = C_INCLUDE_USAGE + 1

    cdef void _read(self) noexcept:
        cdef Found* found = self.found
        self.has_model = found[C_MODEL].seen > 0
        self.model_is_string = found[C_MODEL].kind == J_STRING
        self.duplicate_model = found[C_MODEL].seen > 1
        self.model_start, self.model_stop = found[C_MODEL].start, found[C_MODEL].stop
        self.stream = found[C_STREAM].kind == J_TRUE
        self.has_stream_options = found[C_STREAM_OPTIONS].seen > 0
        self.include_usage = found[C_INCLUDE_USAGE].kind == J_TRUE

    cdef bytes model_bytes(self):
        return self.string_at(self.model_start, self.model_stop)

    def peek(self, bytes text not None):
        """Scans; returns (model or None, stream, has stream options, raw model span). PeekError when not JSON."""
        self.scan(text, len(text))
        self.kept = text
        return self._text_of(C_MODEL), self.stream, self.has_stream_options, (self.model_start, self.model_stop)


cdef inline int64_t first_told(int64_t one, int64_t other) noexcept nogil:
    return one if one >= 0 else other


cdef class UsagePeek(ObjectPeek):
    def __cinit__(self):
        self.fields = usage_fields[USAGE_AT_TOP]
        self.count = U_OUTPUT_REASONING + 1
        self._read()

    cdef void look(self, int place) noexcept:
        self.fields = usage_fields[place]

    cdef void _read(self) noexcept:
        cdef Found* choices = &self.found[U_CHOICES]
        self.has_usage = self.found[U_USAGE].kind == J_OBJECT
        self.has_model = self.found[U_MODEL].kind == J_STRING
        self.has_error = self.found[U_ERROR].kind in (J_OBJECT, J_STRING)
        self.choices_empty = choices.kind == J_ARRAY and skip_blanks(
            <const uint8_t*>self.text, choices.start + 1, choices.stop) == choices.stop - 1
        self.input_tokens = first_told(self.int_of(U_PROMPT), self.int_of(U_INPUT))
        self.output_tokens = first_told(self.int_of(U_COMPLETION), self.int_of(U_OUTPUT))
        self.total_tokens = self.int_of(U_TOTAL)
        self.cached_tokens = first_told(
            first_told(self.int_of(U_PROMPT_CACHED), self.int_of(U_INPUT_CACHED)),
            first_told(self.int_of(U_CACHED), self.int_of(U_CACHE_READ)))
        self.cache_write_tokens = self.int_of(U_CACHE_WRITE)
        self.reasoning_tokens = first_told(
            first_told(self.int_of(U_COMPLETION_REASONING), self.int_of(U_OUTPUT_REASONING)),
            self.int_of(U_REASONING))

    cdef bytes model_bytes(self):
        """The model that answered, None when it is not told."""
        if not self.has_model:
            return None
        return self.string_at(self.found[U_MODEL].start, self.found[U_MODEL].stop)

    @property
    def model(self):
        return self._text_of(U_MODEL)

    def peek(self, bytes text not None, int place=USAGE_AT_TOP):
        """Scans; returns (input, output, total, cached, reasoning) tokens or None without usage."""
        if not USAGE_AT_TOP <= place <= USAGE_OF_GEMINI:
            raise ValueError("no such place")
        self.look(place)
        self.scan(text, len(text))
        self.kept = text
        if not self.has_usage:
            return None
        return self.input_tokens, self.output_tokens, self.total_tokens, self.cached_tokens, self.reasoning_tokens


cdef class RpcPeek(ObjectPeek):
    def __cinit__(self):
        self.fields = rpc_fields
        self.count = R_RESULT_CURSOR + 1

    cdef void _read(self) noexcept:
        cdef Found* found = self.found
        self.has_id = found[R_ID].seen > 0
        self.id_kind = found[R_ID].kind
        self.id_start, self.id_stop = found[R_ID].start, found[R_ID].stop
        self.has_method = found[R_METHOD].seen > 0
        self.method_is_string = found[R_METHOD].kind == J_STRING
        self.method_start, self.method_stop = found[R_METHOD].start, found[R_METHOD].stop
        self.has_params = found[R_PARAMS].seen > 0
        self.params_start, self.params_stop = found[R_PARAMS].start, found[R_PARAMS].stop
        self.has_result = found[R_RESULT].seen > 0
        self.has_error = found[R_ERROR].seen > 0
        self.has_client_capabilities = found[R_META_CAPABILITIES].kind == J_OBJECT

    cdef bytes method_bytes(self):
        """The decoded method, None when it is no string."""
        return self.string_at(self.method_start, self.method_stop) if self.method_is_string else None

    @property
    def jsonrpc(self):
        return self._text_of(R_JSONRPC)

    @property
    def method(self):
        return self._text_of(R_METHOD)

    @property
    def name(self):
        return self._text_of(R_NAME)

    @property
    def uri(self):
        return self._text_of(R_URI)

    @property
    def protocol_version(self):
        return self._text_of(R_VERSION)

    @property
    def task_id(self):
        return self._text_of(R_TASK)

    @property
    def meta_version(self):
        return self._text_of(R_META_VERSION)

    def peek(self, bytes text not None):
        """Scans `text`. PeekError when it is not JSON."""
        self.scan(text, len(text))
        self.kept = text

    def method_of(self, bytes text not None):
        """The method of `text`, which was peeked at last, or None."""
        return self._text_of(R_METHOD) if text is self.kept else None

    def id_span(self):
        """(start, stop) of the raw id."""
        return self.id_start, self.id_stop

    def params_span(self):
        """(start, stop) of the raw params."""
        return self.params_start, self.params_stop
