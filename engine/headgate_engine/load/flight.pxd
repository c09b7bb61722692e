# A request that is under way, and what is read of its answer.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.load.ledger cimport LoadLedger
from headgate_engine.load.request cimport LoadRequest
from headgate_engine.peek.delta cimport DeltaPeek
from headgate_engine.peek.json cimport RpcPeek
from headgate_engine.sse.decode cimport SseDecoder
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class Flight:
    cdef LoadRequest request
    cdef readonly int64_t due_ns, sent_ns
    cdef int status
    cdef bint events                 # the answer is an event stream
    cdef bint complete               # the stream has said its end
    cdef str fault                   # what is wrong with the answer; None: nothing so far
    cdef int64_t first_ns, last_ns   # of the first and of the last token; 0: none
    cdef SseDecoder decoder
    cdef DeltaPeek peek
    cdef RpcPeek rpc
    cdef ByteBuffer kept

    cdef int begin(self, LoadRequest request, int64_t due_ns, int64_t now_ns) except -1
    cdef int head(self, MessageHead head) except -1
    cdef int data(self, LoadLedger ledger, const char* p, Py_ssize_t n, int64_t now_ns) except -1
    # The answer is whole: says so in the ledger.
    cdef int end(self, LoadLedger ledger, int64_t now_ns) except -1
    cdef int _event(self, LoadLedger ledger, int64_t now_ns) except -1
    cdef bint _is_token(self) except -1
    cdef int _response(self, const char* p, Py_ssize_t n) except -1
