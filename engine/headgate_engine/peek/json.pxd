# Reads members of a JSON text without building objects: one pass checks the whole text (peek.scan) and records the
# spans of the watched members. json.pyx has a table of them for each class.

from libc.stdint cimport int64_t

from headgate_engine.peek.scan cimport Field, Found

cdef enum:
    DEFAULT_DEPTH = 64
    FIELDS = 24                # largest number of watched members of one class, the top value included
    COUNT_FIELDS = 56          # the same inside a usage object

# Writes a table of watched members (index, from 1 on -> path) into `fields`.
cdef int fill_table(table, Field* fields, int most=*) except -1

cdef class ObjectPeek:
    cdef const char* text      # of the last scan; the caller's buffer must outlive all reads of values
    cdef bytes kept            # the same text if the caller is Python
    cdef Found found[FIELDS]
    cdef const Field* fields
    cdef int count
    cdef readonly int max_depth
    cdef readonly int kind               # JsonKind of the whole text
    cdef readonly Py_ssize_t object_end  # offset of the top container's closing brace, -1 if there is none
    cdef readonly bint empty             # the top container has no members
    cdef readonly bint duplicate         # a watched member occurs more than once in its object; the last one counts
    # Raises PeekError; all fields are then reset.
    cdef int scan(self, const char* p, Py_ssize_t n) except -1
    cdef void _forget(self) noexcept
    cdef void _read(self) noexcept
    cdef bytes string_at(self, Py_ssize_t start, Py_ssize_t stop)
    cdef str _text_of(self, int field)

cdef class ChatPeek(ObjectPeek):
    # The members of an LLM request that routing needs.
    cdef readonly bint has_model, model_is_string, duplicate_model, stream, has_stream_options, include_usage
    cdef readonly bint has_include_usage, has_completion_limit
    cdef readonly Py_ssize_t model_start, model_stop      # raw value, quotes included
    cdef bytes model_bytes(self)
    # The raw value of `max_tokens`, None without it.
    cdef bytes max_tokens(self)
    # The settings of PARAMS in the request: numbers and strings by name; None if there are none.
    cpdef dict params(self)
    cdef object _param(self, const Found* found)

# Where a response or an event has its usage.
cdef enum:
    USAGE_AT_TOP = 0
    USAGE_IN_MESSAGE = 1       # message_start
    USAGE_IN_RESPONSE = 2      # events of responses
    USAGE_OF_GEMINI = 3        # usageMetadata
    USAGE_OF_RERANK = 4        # usage or meta
    USAGE_ANYWHERE = 5         # any of these, for unknown formats

cdef class UsagePeek(ObjectPeek):
    # The members of a response or a stream's event that accounting needs; -1 for a count that is not reported.
    cdef readonly bint has_usage, choices_empty, has_model, has_error
    cdef readonly int64_t input_tokens, output_tokens, total_tokens, cached_tokens, reasoning_tokens
    cdef readonly int64_t cache_write_tokens, tool_prompt_tokens
    cdef readonly int64_t input_text_tokens, input_image_tokens, input_audio_tokens
    cdef readonly int64_t output_text_tokens, output_image_tokens, output_audio_tokens
    cdef readonly bint of_gemini         # the usage has Gemini's names
    cdef int place
    cdef void look(self, int place) noexcept
    cdef const Found* _usage(self) noexcept
    cdef void _count(self, const Found* usage) noexcept
    cdef bytes model_bytes(self)
    cdef bytes tier_bytes(self)

# Watched members of a JSON-RPC message. An object precedes its members.
cdef enum:
    R_JSONRPC = 1
    R_METHOD
    R_ID
    R_PARAMS
    R_RESULT
    R_ERROR
    R_NAME
    R_URI
    R_VERSION
    R_TASK
    R_META
    R_META_VERSION
    R_META_CAPABILITIES
    R_RESULT_TASK_ID
    R_RESULT_TASK
    R_RESULT_TASK_OWN_ID
    R_RESULT_CURSOR

cdef class RpcPeek(ObjectPeek):
    # JSON-RPC 2.0 envelope.
    cdef readonly bint has_id, has_method, method_is_string, has_result, has_error, has_params
    cdef readonly int id_kind
    cdef Py_ssize_t id_start, id_stop, method_start, method_stop, params_start, params_stop
