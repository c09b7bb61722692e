# What became of the requests of a run.
#
# `latency` has every request that was answered well, and every one that waited for its time limit or the end of the run: with the
# time that it had waited then, as a lower bound. Failures that came at once (a refused connection, status 503) are counted by
# their kind and have no latency, which would make a broken target look quick.

from headgate_engine.load.histogram cimport LatencyHistogram

from libc.stdint cimport int64_t, uint64_t

cdef class LoadLedger:
    cdef readonly LatencyHistogram latency       # from when a request was due to the end of its answer
    cdef readonly LatencyHistogram first_token   # from when it was due to the first token of a stream
    cdef readonly LatencyHistogram between       # two tokens of a stream
    # Of the generator: from when a request was due until it left, where a connection was free.
    cdef readonly LatencyHistogram lag
    cdef readonly LatencyHistogram window        # as `latency`, since the reader of it has cleared it
    cdef readonly uint64_t good, in_time, failed, sent, bytes_read, tokens, reconnects
    cdef readonly dict errors                    # kind -> count
    cdef public int64_t until_ns                 # the end of the run; answers behind it are good and not in time
    cdef public int64_t since_ns                 # requests that were due before are not counted (warm-up)

    cdef int answered(self, int64_t due_ns, int64_t now_ns) except -1
    # `waited`: it did not fail but took too long.
    cdef int lost(self, int64_t due_ns, int64_t now_ns, str kind, bint waited, uint64_t times=*) except -1
    cdef int told(self, str kind, uint64_t times) except -1
