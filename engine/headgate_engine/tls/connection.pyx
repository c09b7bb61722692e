"""TLS of one connection; see connection.pxd."""

from headgate_engine.tls.context cimport KeptSession, TlsContext, TlsPipe
from headgate_engine.tls.library cimport BIO, X509, openssl, take_reasons
from headgate_engine.wire.buffer cimport ByteBuffer

from cpython.bytes cimport PyBytes_AS_STRING
from libc.string cimport memcpy

from headgate_engine.errors import TlsError
from headgate_engine.tls.faults import reason_of

cdef enum:
    ERROR_WANT_READ = 2
    ERROR_ZERO_RETURN = 6
    SENT_SHUTDOWN = 1
    BIO_CTRL_FLUSH = 11
    BIO_TYPE_SOURCE_SINK = 0x400
    BIO_RETRY_READ = 0x01 | 0x08
    CTRL_SET_TLSEXT_HOSTNAME = 55
    # No partial wildcards (RFC 6125 section 6.4.3).
    CHECK_FLAG_NO_PARTIAL_WILDCARDS = 0x4
    # SSL_write(3) takes an int.
    MOST_WRITE = 0x40000000

cdef void* bio_method = NULL


cdef int _bio_read(BIO* bio, char* to, int size) noexcept:
    cdef TlsPipe* pipe = <TlsPipe*>openssl.BIO_get_data(bio)
    cdef Py_ssize_t n
    openssl.BIO_clear_flags(bio, BIO_RETRY_READ)
    if pipe == NULL or pipe.input_len == 0:
        openssl.BIO_set_flags(bio, BIO_RETRY_READ)
        return -1
    n = size if size < pipe.input_len else pipe.input_len
    memcpy(to, pipe.input, n)
    pipe.input += n
    pipe.input_len -= n
    return <int>n


cdef int _bio_write(BIO* bio, const char* data, int size) noexcept:
    cdef TlsPipe* pipe = <TlsPipe*>openssl.BIO_get_data(bio)
    if pipe == NULL or pipe.out == NULL:
        return -1
    try:
        (<ByteBuffer>pipe.out).append(data, size)
    except MemoryError:
        return -1
    return size


cdef long _bio_ctrl(BIO* bio, int what, long number, void* pointer) noexcept:
    return 1 if what == BIO_CTRL_FLUSH else 0


cdef BIO* _new_bio() except NULL:
    global bio_method
    cdef BIO* bio
    if bio_method == NULL:
        bio_method = openssl.BIO_meth_new(openssl.BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, b"headgate")
        if bio_method == NULL:
            raise MemoryError()
        openssl.BIO_meth_set_read(bio_method, _bio_read)
        openssl.BIO_meth_set_write(bio_method, _bio_write)
        openssl.BIO_meth_set_ctrl(bio_method, _bio_ctrl)
    bio = openssl.BIO_new(bio_method)
    if bio == NULL:
        raise MemoryError()
    openssl.BIO_set_init(bio, 1)
    return bio


cdef bint is_address(str name):
    """Addresses are no server names (RFC 6066 section 3). No host name has a colon, or digits only behind its last dot."""
    return ":" in name or name.rpartition(".")[2].isdigit()


cdef inline void forget_faults() noexcept:
    """What anything else in this thread has left in the library's list would pass for a fault of this connection: the list
    has to be empty before a call (SSL_get_error(3))."""
    if openssl.ERR_peek_error() != 0:
        openssl.ERR_clear_error()


cdef class TlsConnection:
    """TLS of one connection.

    out: what is to be sent is appended there; by default to a buffer of its own. Of a client, server_name: the name that
    it asks for, and that must be in the certificate; check_name: False: it need not be; session: what it resumes, and where new
    sessions are kept.
    """

    def __init__(self, TlsContext context not None, ByteBuffer out=None, *, str server_name=None, bint check_name=True,
                 KeptSession session=None):
        cdef BIO* bio
        cdef bytes name
        cdef void* param
        cdef int found
        if self.ssl != NULL:
            raise ValueError("a connection is set up once")
        context.check()
        self.context = context
        self.out = ByteBuffer() if out is None else out
        self.pipe.out = <void*>self.out
        self.ssl = openssl.SSL_new(context.ctx)
        if self.ssl == NULL:
            openssl.ERR_clear_error()
            raise MemoryError()
        bio = _new_bio()
        openssl.BIO_set_data(bio, &self.pipe)
        openssl.SSL_set_bio(self.ssl, bio, bio)
        if context.server:
            openssl.SSL_set_accept_state(self.ssl)
            return
        openssl.SSL_set_connect_state(self.ssl)
        if server_name is not None:
            name = server_name.encode("ascii")
            if b"\0" in name or not name:
                raise TlsError("a server name has no zero byte and is not empty")
            param = openssl.SSL_get0_param(self.ssl)
            found = 1
            if is_address(server_name):
                if check_name:
                    found = openssl.X509_VERIFY_PARAM_set1_ip_asc(param, name)
            else:
                openssl.SSL_ctrl(self.ssl, CTRL_SET_TLSEXT_HOSTNAME, 0, PyBytes_AS_STRING(name))
                if check_name:
                    openssl.X509_VERIFY_PARAM_set_hostflags(param, CHECK_FLAG_NO_PARTIAL_WILDCARDS)
                    found = openssl.X509_VERIFY_PARAM_set1_host(param, name, len(name))
            if found != 1:
                openssl.ERR_clear_error()
                raise TlsError("the server name cannot be checked")
        if session is not None:
            self.kept = session
            self.pipe.kept = <void*>session
            if session.session != NULL:
                openssl.SSL_set_session(self.ssl, session.session)

    def __dealloc__(self):
        if self.ssl != NULL:
            self.pipe.out = self.pipe.kept = NULL
            self.pipe.input_len = 0
            if self.state == TLS_OPEN or self.state == TLS_ENDED:
                # Without this the library holds that the connection went wrong, and its session is not resumed.
                openssl.SSL_set_shutdown(self.ssl, SENT_SHUTDOWN)
            openssl.SSL_free(self.ssl)

    # -- bytes -------------------------------------------------------------------------------------------------------
    cdef void take(self, const char* p, Py_ssize_t n) noexcept:
        self.pipe.input = p
        self.pipe.input_len = n

    cdef bint unread(self) noexcept:
        return self.pipe.input_len > 0 or self.ssl != NULL and openssl.SSL_has_pending(self.ssl)

    cdef int handshake(self) except -1:
        cdef int result
        if self.state != TLS_HANDSHAKE or self.ssl == NULL:
            return self.state
        forget_faults()
        result = openssl.SSL_do_handshake(self.ssl)
        if result == 1:
            self.state = TLS_OPEN
        else:
            self._failed(result)
        return self.state

    cdef Py_ssize_t read(self, char* into, Py_ssize_t room) except -1:
        cdef Py_ssize_t done = 0
        cdef int result
        if self.state != TLS_OPEN:
            return 0
        forget_faults()
        # Record for record, until what has come is used up: asking once more to learn that would cost as much again.
        while done < room and (self.pipe.input_len > 0 or openssl.SSL_has_pending(self.ssl)):
            result = openssl.SSL_read(self.ssl, into + done, <int>(room - done))
            if result <= 0:
                self._failed(result)
                break
            done += result
        return done

    cdef int _failed(self, int result) except -1:
        """Called when OpenSSL has not done what it was asked for; sets the state, unless it waits for bytes."""
        cdef int error = openssl.SSL_get_error(self.ssl, result)
        cdef unsigned long code
        cdef long verified
        if error == ERROR_WANT_READ:
            return 0
        if error == ERROR_ZERO_RETURN:
            self.state = TLS_ENDED
            return 0
        code = openssl.ERR_peek_error()
        text = take_reasons()
        self.reason = reason_of(code & 0x7FFFFF)
        verified = openssl.SSL_get_verify_result(self.ssl)
        if verified != 0 and self.reason == "certificate":
            text += ": " + (<bytes>openssl.X509_verify_cert_error_string(verified)).decode("ascii", "replace")
        self.fault = text or "the TLS library failed"
        self.state = TLS_FAILED
        return 0

    cdef bint write(self, const char* p, Py_ssize_t n) except -1:
        cdef int part, result
        if self.state != TLS_OPEN and self.state != TLS_ENDED:
            return False
        forget_faults()
        while n > 0:
            part = MOST_WRITE if n > MOST_WRITE else <int>n
            result = openssl.SSL_write(self.ssl, p, part)
            if result <= 0:
                self._failed(result)
                if self.state == TLS_OPEN or self.state == TLS_ENDED:
                    # It waits for bytes of the peer: in a renegotiation, which is switched off.
                    self.state, self.fault, self.reason = TLS_FAILED, "renegotiation", "protocol"
                return False
            p += result
            n -= result
        return True

    cdef int end(self) except -1:
        if self.ssl != NULL and (self.state == TLS_OPEN or self.state == TLS_ENDED):
            openssl.SSL_shutdown(self.ssl)
            openssl.ERR_clear_error()
        return 0

    # -- for Python --------------------------------------------------------------------------------------------------
    def version(self):
        return None if self.ssl == NULL else (<bytes>openssl.SSL_get_version(self.ssl)).decode("ascii")

    def selected_alpn_protocol(self):
        cdef const unsigned char* name = NULL
        cdef unsigned int length = 0
        if self.ssl != NULL:
            openssl.SSL_get0_alpn_selected(self.ssl, &name, &length)
        return (<const char*>name)[:length].decode("ascii", "replace") if length else None

    @property
    def resumed(self):
        return self.ssl != NULL and openssl.SSL_session_reused(self.ssl) == 1

    def verified_certificate(self):
        """Return the peer's certificate (DER); None without one, or if the context's roots have not signed it."""
        if self.ssl == NULL or not self.context.verified or openssl.SSL_get_verify_result(self.ssl) != 0:
            return None
        return self.peer_certificate()

    def peer_certificate(self):
        """Return the peer's certificate (DER), None without one. It may be a stranger's."""
        cdef X509* one = NULL if self.ssl == NULL else openssl.SSL_get1_peer_certificate(self.ssl)
        cdef unsigned char* der = NULL
        cdef int n
        if one == NULL:
            return None
        n = openssl.i2d_X509(one, &der)
        openssl.X509_free(one)
        if n <= 0:
            return None
        try:
            return (<const char*>der)[:n]
        finally:
            openssl.CRYPTO_free(der, b"", 0)
