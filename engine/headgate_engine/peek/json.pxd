# Looking into JSON without building it: one pass checks the whole text and tells the members of the top object.

from libc.stdint cimport int64_t, uint8_t

cdef enum JsonKind:
    J_NONE = 0
    J_STRING = 1
    J_NUMBER = 2
    J_TRUE = 3
    J_FALSE = 4
    J_NULL = 5
    J_OBJECT = 6
    J_ARRAY = 7

cdef enum:
    MAX_DEPTH = 128

cdef class ObjectPeek:
    cdef const char* text
    cdef Py_ssize_t length
    cdef readonly int kind             # JsonKind of the whole text
    cdef readonly Py_ssize_t object_end  # offset of the top object's closing brace
    cdef readonly bint empty           # the top container has no members
    cdef int scan(self, const char* p, Py_ssize_t n) except -1
    # Called for each member of the top object; value_start..value_stop is the raw value.
    cdef int member(self, const char* key, Py_ssize_t key_len, Py_ssize_t value_start, Py_ssize_t value_stop,
                    int kind) except -1
    cdef int _member(self, Py_ssize_t key_start, Py_ssize_t key_stop, Py_ssize_t start, Py_ssize_t stop,
                     int kind) except -1
    cdef bytes string_at(self, Py_ssize_t start, Py_ssize_t stop)
    cdef int64_t int_at(self, Py_ssize_t start, Py_ssize_t stop) noexcept

cdef class ChatPeek(ObjectPeek):
    # What routing an LLM request needs.
    cdef readonly bint has_model, model_is_string, duplicate_model, stream, has_stream_options
    cdef readonly Py_ssize_t model_start, model_stop      # raw value, quotes included
    cdef bytes model_bytes(self)

cdef class UsagePeek(ObjectPeek):
    # What accounting reads from an answer or a stream's event; -1 where the provider said nothing.
    cdef readonly bint has_usage, choices_empty
    cdef readonly int64_t input_tokens, output_tokens, total_tokens, cached_tokens, reasoning_tokens

cdef class UsageMembers(ObjectPeek):
    cdef UsagePeek owner

cdef class RpcPeek(ObjectPeek):
    # JSON-RPC 2.0 envelope.
    cdef readonly bint has_id, has_method, method_is_string, has_result, has_error, has_params, duplicate
    cdef readonly int id_kind
    cdef Py_ssize_t id_start, id_stop, method_start, method_stop, params_start, params_stop
