# What a client was answered, for the request log: kept only where the configuration wants prompts and answers.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class LogPayloadTap(ResponseTap):
    cdef ResponseTap inner
    cdef LlmCall call
    cdef MessageHead head
    cdef ByteBuffer kept
    cdef int _mirror(self) except -1
    cdef int _keep(self, const char* p, Py_ssize_t n) except -1
    cdef int _told(self) except -1

# The tap around another one, or that one where nothing is kept.
cdef ResponseTap log_payload_tap(LlmCall call, ResponseTap inner)
# A kept text, cut to MAX_PAYLOAD bytes, as a JSON string; None without one.
cdef bytes payload_json(bytes text)
