# What one worker learns of one MCP target from the calls that it makes anyway.

from headgate_engine.shared.histogram cimport Histogram
from headgate_engine.shared.segment cimport Segment

from libc.stdint cimport int64_t

cdef class McpTargetMeter:
    cdef readonly Segment segment
    cdef str labels                      # of its series, but for the outcome
    cdef Histogram passed, refused, lost  # durations of calls: None until there is one
    cdef str name, version, protocol     # as the server gave them; None: not known
    cdef str error                       # the last one, cut
    # CLOCK_MONOTONIC, 0 for never: when the server last gave its name, answered, did not answer, and when the last error was.
    cdef int64_t opened_ns, answered_ns, failed_ns, error_ns
    cdef Histogram _series(self, str outcome)
    cdef int _note_error(self, str text, int64_t now_ns) except -1
    # A response in `took_ns`. It may hold a JSON-RPC error, or the error of a tool.
    cpdef int answered(self, int64_t took_ns, str method, bytes answer) except -1
    # An answer without a response: a refusal, such as a status.
    cpdef int refused_with(self, int64_t took_ns, str text) except -1
    # No answer at all, or a broken one.
    cpdef int failed(self, int64_t took_ns, str text) except -1
