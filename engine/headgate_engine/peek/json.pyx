# cython: boundscheck=False
"""Classes that read a few members of a JSON text, and the tables of the members that each one watches.

boundscheck is off: all spans come from the scan of the same text.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr, memset

from headgate_engine.peek.scan cimport (
    DEPTH_LIMIT, F_DEPTH, F_NONE, J_ARRAY, J_NONE, J_NUMBER, J_OBJECT, J_STRING, J_TRUE, Field, Found, Scan, scan_text,
    skip_blanks)

import json

from headgate_engine.peek import scan as _scan

MAX_DEPTH = DEPTH_LIMIT

# Watched members: index -> path. An object precedes its members.
cdef enum:
    C_MODEL = 1
    C_STREAM
    C_STREAM_OPTIONS
    C_INCLUDE_USAGE
    C_PARAMS
    C_ALL = C_PARAMS + 9
    LONG_TEXT = 65536          # bytes; a longer one is scanned without the interpreter's lock
    LONGEST_PARAM = 64         # bytes; a longer value is ignored
    P_MAX_TOKENS = 2           # indexes into PARAMS
    P_COMPLETION_LIMIT = 3

# Settings of a request that its log line contains.
PARAMS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "frequency_penalty", "presence_penalty",
          "seed", "encoding_format", "dimensions")
CHAT_FIELDS = {
    C_MODEL: ("model",),
    C_STREAM: ("stream",),
    C_STREAM_OPTIONS: ("stream_options",),
    C_INCLUDE_USAGE: ("stream_options", "include_usage"),
    **{C_PARAMS + index: (name,) for index, name in enumerate(PARAMS)},
}

# Paths of usage, model, choices, error and service tier in a response. The counts inside usage have a table of their
# own, so that the scan of events without usage is quick.
cdef enum:
    U_OUTER = 1
    U_USAGE
    U_MODEL
    U_CHOICES
    U_ERROR
    U_TIER
    U_USUAL = U_TIER + 1
    # Only for USAGE_ANYWHERE:
    U_GEMINI = U_USUAL
    U_RESPONSE_USAGE
    U_RESPONSE_GEMINI
    U_METADATA
    U_METADATA_USAGE
    U_ALL


def _answer_table(*outer, **others):
    """Return the watched members.

    outer: path of the object that holds `usage`, empty for the top. others: paths that differ from the rule.
    """
    return {
        U_OUTER: others.get("outer", outer or ("response",)),
        U_USAGE: others.get("usage", (*outer, "usage")),
        U_MODEL: others.get("model", (*outer, "model")),
        U_CHOICES: ("choices",),
        U_ERROR: ("error",),
        U_TIER: (*outer, "service_tier"),
    }


# Chat completions name the counts prompt and completion; messages, responses and some providers' embeddings name them
# input and output. Details are in an object of their own or, for a few providers, beside the sums.
cdef enum:
    T_PROMPT = 1
    T_INPUT
    T_COMPLETION
    T_OUTPUT
    T_TOTAL
    T_CACHED
    T_CACHE_READ
    T_CACHE_WRITE
    T_REASONING
    T_TOOL_PROMPT
    T_INPUT_DETAILS                            # three spellings
    T_OUTPUT_DETAILS = T_INPUT_DETAILS + 3     # three spellings
    T_INPUT_PARTS = T_OUTPUT_DETAILS + 3       # INPUT_PARTS of each
    T_OUTPUT_PARTS = T_INPUT_PARTS + 15        # OUTPUT_PARTS of each
    T_RERANK = T_OUTPUT_PARTS + 12             # tokens, billed_units
    T_RERANK_COUNTS = T_RERANK + 2             # tokens.input, .output, billed_units.total, .input
    T_ALL = T_RERANK_COUNTS + 4

INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details", "input_token_details")
OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details", "output_token_details")
INPUT_PARTS = ("cached_tokens", "cache_write_tokens", "text_tokens", "image_tokens", "audio_tokens")
OUTPUT_PARTS = ("reasoning_tokens", "text_tokens", "image_tokens", "audio_tokens")
SUMS = ("prompt_tokens", "input_tokens", "completion_tokens", "output_tokens", "total_tokens", "cached_tokens",
        "cache_read_input_tokens", "cache_creation_input_tokens", "reasoning_tokens", "tool_prompt_tokens")
GEMINI_SUMS = ("promptTokenCount", "inputTokenCount", "candidatesTokenCount", "outputTokenCount", "totalTokenCount",
               "cachedContentTokenCount", "cacheReadTokenCount", "cacheWriteTokenCount", "thoughtsTokenCount",
               "toolUsePromptTokenCount")


def _count_table(sums):
    """Return the counts inside a usage object, index to path."""
    paths = [(name,) for name in (*sums, *INPUT_DETAILS, *OUTPUT_DETAILS)]
    paths += [(name, part) for name in INPUT_DETAILS for part in INPUT_PARTS]
    paths += [(name, part) for name in OUTPUT_DETAILS for part in OUTPUT_PARTS]
    paths += [("tokens",), ("billed_units",), ("tokens", "input_tokens"), ("tokens", "output_tokens"),
              ("billed_units", "total_tokens"), ("billed_units", "input_tokens")]
    return dict(enumerate(paths, start=1))


COUNTS = _count_table(SUMS)
GEMINI_COUNTS = _count_table(GEMINI_SUMS)
ANSWERS = _answer_table()
# All members that are read from a response with `usage` at its top.
USAGE_FIELDS = dict(enumerate((*ANSWERS.values(), *(("usage", *path) for path in COUNTS.values())), start=1))
GEMINI_USAGE = _answer_table(usage=("usageMetadata",), model=("modelVersion",))

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

cdef Field nothing[1]              # watches only the whole text
cdef Field chat_fields[FIELDS]
cdef Field usage_fields[6][FIELDS]         # by UsagePlace
cdef Field counts_of[2][COUNT_FIELDS]      # the usual names, Gemini's names
cdef Field rpc_fields[FIELDS]
cdef list names = []           # references to the strings that Field points at


cdef int fill_table(table, Field* fields, int most=FIELDS) except -1:
    """Write a table as C structs."""
    places = {(): 0}
    for index, path in table.items():
        if index != len(places) or index >= most:
            raise AssertionError("a table of watched members counts up from 1")
        name = path[len(path) - 1].encode()
        names.append(name)
        fields[<int>index].name = name
        fields[<int>index].name_len = len(name)
        parent = places[path[:len(path) - 1]]
        fields[<int>index].parent = parent
        # The newest member comes first. The order does not matter, as the names within a parent differ.
        fields[<int>index].next = fields[<int>parent].first
        fields[<int>parent].first = index
        places[path] = index
    return 0


fill_table(CHAT_FIELDS, chat_fields)
fill_table(ANSWERS, usage_fields[USAGE_AT_TOP])
fill_table(_answer_table("message"), usage_fields[USAGE_IN_MESSAGE])
fill_table(_answer_table("response"), usage_fields[USAGE_IN_RESPONSE])
fill_table(GEMINI_USAGE, usage_fields[USAGE_OF_GEMINI])
fill_table(_answer_table(outer=("meta",)), usage_fields[USAGE_OF_RERANK])
fill_table(ANSWERS | {
    U_GEMINI: ("usageMetadata",), U_RESPONSE_USAGE: ("response", "usage"),
    U_RESPONSE_GEMINI: ("response", "usageMetadata"), U_METADATA: ("metadata",),
    U_METADATA_USAGE: ("metadata", "usage")}, usage_fields[USAGE_ANYWHERE])
fill_table(COUNTS, counts_of[0], COUNT_FIELDS)
fill_table(GEMINI_COUNTS, counts_of[1], COUNT_FIELDS)
if len(COUNTS) != T_ALL - 1:
    raise AssertionError("the positions of counts are those of their table")
fill_table(RPC_FIELDS, rpc_fields)
cdef dict rpc_places = {path: index for index, path in RPC_FIELDS.items()}


class PeekError(ValueError):
    """The text is not JSON (RFC 8259, UTF-8 without a byte order mark). offset: the byte where the error shows."""

    def __init__(self, reason, offset):
        super().__init__(f"{reason} at byte {offset}")
        self.offset = offset


class DepthError(PeekError):
    """The text may be JSON, but is nested too deeply. offset: the first bracket beyond the limit."""


cdef int64_t whole_number(const char* text, const Found* found) noexcept nogil:
    """Return a whole number of up to 18 digits, -1 for anything else."""
    cdef int64_t value = 0
    cdef Py_ssize_t at
    if found.kind != J_NUMBER or found.stop - found.start > 18:
        return -1
    for at in range(found.start, found.stop):
        if not 48 <= text[at] <= 57:
            return -1
        value = value * 10 + (text[at] - 48)
    return value


cdef class ObjectPeek:
    def __init__(self, int max_depth=DEFAULT_DEPTH):
        if not 1 <= max_depth <= MAX_DEPTH:
            raise ValueError(f"a depth lies between 1 and {MAX_DEPTH}")
        self.max_depth = max_depth

    def __cinit__(self):
        # Also for objects that are made without __init__.
        self.max_depth = DEFAULT_DEPTH
        self.object_end = -1
        self.fields = nothing
        self.count = 1

    cdef int scan(self, const char* p, Py_ssize_t n) except -1:
        cdef Scan s
        cdef int result
        memset(self.found, 0, self.count * sizeof(Found))
        self.kept = None
        self.object_end = -1
        s.text = <const uint8_t*>p
        s.length = n
        s.fields, s.count, s.max_depth, s.found = self.fields, self.count, self.max_depth, self.found
        s.duplicate = s.empty = False
        s.fault = F_NONE
        if n > LONG_TEXT:
            with nogil:
                result = scan_text(&s)
        else:
            result = scan_text(&s)
        if result < 0:
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
        """Set the fields of the class from the members that the scan found."""

    cdef bytes string_at(self, Py_ssize_t start, Py_ssize_t stop):
        """Return the decoded string start..stop (raw form, quotes included). Lone surrogates become three bytes."""
        if memchr(self.text + start, 92, stop - start) == NULL:
            return self.text[start + 1:stop - 1]
        return json.loads(self.text[start:stop]).encode("utf-8", "surrogatepass")

    cdef str _text_of(self, int field):
        """Return the decoded string for callers from Python, None if the value is not a string."""
        if self.kept is None or self.found[field].kind != J_STRING:
            return None
        return self.string_at(self.found[field].start, self.found[field].stop).decode("utf-8", "surrogatepass")

    @property
    def is_object(self):
        return self.kind == J_OBJECT


cdef class ChatPeek(ObjectPeek):
    def __cinit__(self):
        self.fields = chat_fields
        self.count = C_ALL

    cdef void _read(self) noexcept:
        cdef Found* found = self.found
        self.has_model = found[C_MODEL].seen > 0
        self.model_is_string = found[C_MODEL].kind == J_STRING
        self.duplicate_model = found[C_MODEL].seen > 1
        self.model_start, self.model_stop = found[C_MODEL].start, found[C_MODEL].stop
        self.stream = found[C_STREAM].kind == J_TRUE
        self.has_stream_options = found[C_STREAM_OPTIONS].seen > 0
        self.include_usage = found[C_INCLUDE_USAGE].kind == J_TRUE
        self.has_include_usage = found[C_INCLUDE_USAGE].seen > 0
        self.has_completion_limit = found[C_PARAMS + P_COMPLETION_LIMIT].seen > 0

    cpdef dict params(self):
        cdef dict told = None
        cdef int i
        cdef Found* found
        for i in range(len(PARAMS)):
            found = &self.found[C_PARAMS + i]
            if (found.kind == J_NUMBER or found.kind == J_STRING) and found.stop - found.start <= LONGEST_PARAM:
                told = {} if told is None else told
                told[PARAMS[i]] = self._param(found)
        return told

    cdef bytes max_tokens(self):
        cdef Found* found = &self.found[C_PARAMS + P_MAX_TOKENS]
        return self.text[found.start:found.stop] if found.seen else None

    cdef object _param(self, const Found* found):
        cdef bytes raw = self.text[found.start:found.stop]
        if found.kind == J_STRING:
            return self.string_at(found.start, found.stop).decode("utf-8", "surrogatepass")
        return int(raw) if raw.lstrip(b"-").isdigit() else float(raw)

    cdef bytes model_bytes(self):
        return self.string_at(self.model_start, self.model_stop)

    def peek(self, bytes text not None):
        """Scan and return (model or None, stream, has stream options, raw span of the model).

        Raises PeekError if the text is not JSON.
        """
        self.scan(text, len(text))
        self.kept = text
        return self._text_of(C_MODEL), self.stream, self.has_stream_options, (self.model_start, self.model_stop)


cdef inline int64_t first_told(int64_t one, int64_t other) noexcept nogil:
    return one if one >= 0 else other


cdef class UsagePeek(ObjectPeek):
    def __cinit__(self):
        self.look(USAGE_AT_TOP)
        self._read()

    cdef void look(self, int place) noexcept:
        self.place = place
        self.fields = usage_fields[place]
        self.count = U_ALL if place == USAGE_ANYWHERE else U_USUAL

    cdef void _read(self) noexcept:
        cdef Found* choices = &self.found[U_CHOICES]
        cdef const Found* usage = self._usage()
        self.has_usage = usage != NULL
        self.has_model = self.found[U_MODEL].kind == J_STRING
        self.has_error = self.found[U_ERROR].kind in (J_OBJECT, J_STRING)
        self.choices_empty = choices.kind == J_ARRAY and skip_blanks(
            <const uint8_t*>self.text, choices.start + 1, choices.stop) == choices.stop - 1
        self._count(usage)

    cdef const Found* _usage(self) noexcept:
        """Return the object that holds the counts, NULL if there is none."""
        cdef int i
        self.of_gemini = self.place == USAGE_OF_GEMINI
        if self.found[U_USAGE].kind == J_OBJECT:
            return &self.found[U_USAGE]
        if self.place == USAGE_OF_RERANK and self.found[U_OUTER].kind == J_OBJECT:
            return &self.found[U_OUTER]
        if self.place == USAGE_ANYWHERE:
            for i in range(U_GEMINI, U_ALL):
                if i != U_METADATA and self.found[i].kind == J_OBJECT:
                    self.of_gemini = i == U_GEMINI or i == U_RESPONSE_GEMINI
                    return &self.found[i]
        return NULL

    cdef void _count(self, const Found* usage) noexcept:
        """Set the counts from the usage object, -1 for those that it lacks."""
        cdef Found told[COUNT_FIELDS]
        cdef Scan s
        memset(told, 0, T_ALL * sizeof(Found))
        if usage != NULL:
            s.text = <const uint8_t*>self.text + usage.start
            s.length = usage.stop - usage.start
            s.fields, s.count, s.max_depth, s.found = counts_of[self.of_gemini], T_ALL, self.max_depth, told
            s.duplicate = s.empty = False
            s.fault = F_NONE
            scan_text(&s)                # a part of a text that is already checked
            self.duplicate = self.duplicate or s.duplicate
        cdef const char* text = self.text + (usage.start if usage != NULL else 0)
        self.input_tokens = first_told(told_at(text, told, T_PROMPT), told_at(text, told, T_INPUT))
        self.output_tokens = first_told(told_at(text, told, T_COMPLETION), told_at(text, told, T_OUTPUT))
        self.total_tokens = told_at(text, told, T_TOTAL)
        self.cached_tokens = first_told(
            first_part(text, told, T_INPUT_PARTS, 5),
            first_told(told_at(text, told, T_CACHED), told_at(text, told, T_CACHE_READ)))
        self.cache_write_tokens = first_told(
            first_part(text, told, T_INPUT_PARTS + 1, 5), told_at(text, told, T_CACHE_WRITE))
        self.reasoning_tokens = first_told(
            first_part(text, told, T_OUTPUT_PARTS, 4), told_at(text, told, T_REASONING))
        self.tool_prompt_tokens = told_at(text, told, T_TOOL_PROMPT)
        self.input_text_tokens = first_part(text, told, T_INPUT_PARTS + 2, 5)
        self.input_image_tokens = first_part(text, told, T_INPUT_PARTS + 3, 5)
        self.input_audio_tokens = first_part(text, told, T_INPUT_PARTS + 4, 5)
        self.output_text_tokens = first_part(text, told, T_OUTPUT_PARTS + 1, 4)
        self.output_image_tokens = first_part(text, told, T_OUTPUT_PARTS + 2, 4)
        self.output_audio_tokens = first_part(text, told, T_OUTPUT_PARTS + 3, 4)
        if self.place == USAGE_OF_RERANK and self.input_tokens < 0:
            self.input_tokens = first_told(
                told_at(text, told, T_RERANK_COUNTS),
                first_told(told_at(text, told, T_RERANK_COUNTS + 2), told_at(text, told, T_RERANK_COUNTS + 3)))
            self.output_tokens = first_told(self.output_tokens, told_at(text, told, T_RERANK_COUNTS + 1))

    cdef bytes model_bytes(self):
        """Return the model that the response names, None without one."""
        if not self.has_model:
            return None
        return self.string_at(self.found[U_MODEL].start, self.found[U_MODEL].stop)

    cdef bytes tier_bytes(self):
        """Return the service tier that was billed, None if the response does not name it."""
        if self.found[U_TIER].kind != J_STRING:
            return None
        return self.string_at(self.found[U_TIER].start, self.found[U_TIER].stop)

    @property
    def model(self):
        return self._text_of(U_MODEL)

    def peek(self, bytes text not None, int place=USAGE_AT_TOP):
        """Scan and return (input, output, total, cached, reasoning) tokens, None without usage.

        place: 0 `usage`, 1 `message.usage`, 2 `response.usage`, 3 `usageMetadata`, 4 `usage` or `meta`, 5 any of these.
        Raises PeekError if the text is not JSON.
        """
        if not USAGE_AT_TOP <= place <= USAGE_ANYWHERE:
            raise ValueError("no such place")
        self.look(place)
        self.scan(text, len(text))
        self.kept = text
        if not self.has_usage:
            return None
        return self.input_tokens, self.output_tokens, self.total_tokens, self.cached_tokens, self.reasoning_tokens


cdef inline int64_t told_at(const char* text, const Found* told, int field) noexcept nogil:
    return whole_number(text, &told[field])

cdef int64_t first_part(const char* text, const Found* told, int field, int step) noexcept nogil:
    """Return the first of the three spellings that holds a count."""
    cdef int64_t value = whole_number(text, &told[field])
    if value < 0:
        value = whole_number(text, &told[field + step])
    return value if value >= 0 else whole_number(text, &told[field + 2 * step])


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

    def string(self, *path):
        return self._text_of(rpc_places[path])

    def peek(self, bytes text not None):
        """Scan `text`. Raises PeekError if it is not JSON."""
        self.scan(text, len(text))
        self.kept = text
