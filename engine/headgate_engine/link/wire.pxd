# A transport as the engine uses it. Plain sockets are written with send(2) straight from C memory while nothing is queued;
# only what the kernel does not take goes through the transport's queue. Behind the first read, which is the transport's, the
# worker reads them by itself (link/reads). With TLS the transport is a link/secure, which does the same with what it encrypts.

from headgate_engine.link.reads cimport Readable
from headgate_engine.link.secure cimport SecureTransport
from headgate_engine.link.worker cimport Worker
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class Wire(Readable):
    # The connection, an asyncio.BufferedProtocol: gets on_timer(now_ns) too, and is let go of by detach(). A subclass may
    # hand it bytes without the detour over Python.
    cdef object owner
    cdef Worker worker
    cdef object transport
    cdef SecureTransport tls     # the same object, of a connection with TLS
    cdef int fd                  # -1: write through the transport
    cdef bint queued             # the transport holds unsent bytes; resume_writing() follows
    cdef bint own_reads          # the worker reads the socket, the transport does not
    cdef bint closing
    cdef bint write_broken       # the peer takes no more bytes

    cdef object read_error       # OSError that ended reading; None: there was none

    cdef int attach(self, transport) except -1
    # Behind a read of the transport: the next one is ours.
    cdef int read_by_loop(self) except -1
    # Writes `out` then `tail`; clears `out`. Returns a WriteResult (contract.pxd).
    cdef int write_out(self, ByteBuffer out, const char* tail, Py_ssize_t tail_len) except -1
    # All that was written has left for the kernel.
    cdef bint drained(self) except -1
    # Nothing waits in the socket to be read, as far as anyone can tell.
    cdef bint no_pending_input(self) except -1
    cdef int pause_wire(self) except -1
    cdef int resume_wire(self) except -1
    cdef int close_wire(self) except -1
    cdef int abort_wire(self) except -1
    cdef int detach(self) except -1

# The same wire, of a connection.
cdef Wire wired(Wire wire, Worker worker, owner)
