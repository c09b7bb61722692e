# A connection with TLS, between the loop's transport and the protocol of the application. For that protocol it is a transport
# of asyncio; an engine connection's wire (link/wire) writes and reads through it without a call into Python. What comes in is
# read by the worker itself (link/reads), as on a plain socket; what goes out is encrypted into one buffer of the process and
# leaves with one send(2).

from headgate_engine.link.reads cimport Readable
from headgate_engine.link.worker cimport Worker
from headgate_engine.tls.connection cimport TlsConnection
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class SecureTransport(Readable):
    cdef Worker worker           # of the wire; None while the loop reads
    cdef TlsConnection tls       # None: the client's hello has not come
    cdef object raw              # the loop's transport; None: the connection is gone
    cdef int fd
    cdef object protocol         # of the application; None in the handshake
    cdef Readable reader         # its wire; None: it has none, and gets bytes as asyncio gives them
    cdef bint own_reads          # the worker reads the socket, the loop's transport does not
    cdef bint buffered           # the protocol is a BufferedProtocol
    cdef bint queued             # the loop's transport holds unsent bytes
    cdef list unencrypted        # [bytes] that wait for later turns of the loop, and the end behind them; None: nothing does
    cdef Py_ssize_t unencrypted_at, unencrypted_size       # how far the first one is done; bytes that are left of all
    cdef bint turn_wanted        # the loop will call _go_on()
    cdef bint output_ended       # by end_output()
    cdef Py_ssize_t answered     # bytes that the library has said by itself since then
    cdef bint closing, lost, ended
    cdef object high             # of write buffer limits
    cdef readonly int64_t handshake_ns     # how long it took
    cdef int64_t started_ns
    cdef readonly str requested_name       # in the handshake; None: no name
    cdef object identity         # tls.identity.CertificateIdentity of the peer, False: it has none; None: nobody has asked yet
    cdef object peer_identity(self)

    cdef int attach(self, Readable reader, Worker worker) except -1
    # As write_out() of link/wire.
    cdef int write_out(self, ByteBuffer out, const char* tail, Py_ssize_t tail_len) except -1
    cdef int pause(self) except -1
    cdef int resume(self) except -1
    # Says that nothing more is sent; what comes is still read.
    cdef int end_output(self) except -1
    cdef int received(self, const char* p, Py_ssize_t n) except -1
    cdef int _deliver(self, char* p, Py_ssize_t n) except -1
    cdef int _answer(self) except -1
    cdef int _encrypt(self, const char* p, Py_ssize_t n) except -1
    cdef int _encrypt_now(self, const char* p, Py_ssize_t n) except -1
    cdef int _go_on_later(self) except -1
    cdef int _close_now(self) except -1
    cdef int _flush(self) except -1
    cdef int _send(self) except -1
    cdef int _peer_ended(self, int error) except -1
    cdef int _read_by_loop(self) except -1
    # -- what the two sides differ in
    # The first bytes: True when `tls` is there.
    cdef bint prepare(self, const char* p, Py_ssize_t n) except -1
    cdef int established(self) except -1
    cdef int failed(self, str reason, str detail) except -1

# What leaves next, of whatever connection: whoever appends to it flushes it.
cdef ByteBuffer shared_output()
