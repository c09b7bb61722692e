# cython: boundscheck=False
"""The ClientHello of a TLS connection; see hello.pxd.

boundscheck is off: all reads are within the length that is checked before them.
"""

from headgate_engine.wire.buffer cimport ByteBuffer

cdef enum:
    RECORD_HEAD = 5
    HANDSHAKE = 22
    CLIENT_HELLO = 1
    SERVER_NAME = 0
    # RFC 8446 section 5.1. Longer than this is no record of plain text.
    MOST_RECORD = 16384
    # Browsers send 500 bytes, with a post-quantum key share 1,800.
    MOST_HELLO = 32768


cdef inline Py_ssize_t _two(const unsigned char* p) noexcept:
    return p[0] << 8 | p[1]


cdef class ClientHello:
    """A ClientHello while it comes in."""

    cdef int read(self, const unsigned char* p, Py_ssize_t n) except -1:
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t length, wanted
        if n and p[0] != HANDSHAKE:
            return self._refuse("the client does not speak TLS")
        # Most clients send it as one record.
        if n >= RECORD_HEAD + 4:
            length = _two(p + 3)
            wanted = (p[6] << 16) + _two(p + 7) + 4
            if p[1] == 3 and 4 <= wanted <= length <= MOST_RECORD and n >= RECORD_HEAD + length:
                return self._parse(p + RECORD_HEAD, wanted)
        if self.message is None:
            self.message = ByteBuffer()
        self.message.clear()
        while n - at >= RECORD_HEAD:
            length = _two(p + at + 3)
            if p[at] != HANDSHAKE or p[at + 1] != 3 or not 0 < length <= MOST_RECORD:
                return self._refuse("the client does not speak TLS")
            at += RECORD_HEAD
            self.message.append(<const char*>p + at, min(length, n - at))
            if self.message.length >= 4:
                wanted = (<unsigned char>self.message.data[1] << 16) + _two(<unsigned char*>self.message.data + 2) + 4
                if self.message.data[0] != CLIENT_HELLO or wanted > MOST_HELLO:
                    return self._refuse("no ClientHello, or a very long one")
                if self.message.length >= wanted:
                    return self._parse(<unsigned char*>self.message.data, wanted)
            if n - at < length:
                return HELLO_MORE
            at += length
        return HELLO_MORE

    cdef int _refuse(self, str fault) except -1:
        self.fault = fault
        return HELLO_REFUSED

    cdef int _parse(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Finds the server name in a whole message. OpenSSL checks all of it later."""
        cdef Py_ssize_t at = 4 + 2 + 32              # type and length, version, random
        cdef Py_ssize_t end, length
        if p[0] != CLIENT_HELLO or n > MOST_HELLO:
            return self._refuse("no ClientHello, or a very long one")
        if at + 1 > n:
            return self._refuse("malformed ClientHello")
        at += 1 + p[at]                              # session id
        if at + 2 > n:
            return self._refuse("malformed ClientHello")
        at += 2 + _two(p + at)                       # cipher suites
        if at + 1 > n:
            return self._refuse("malformed ClientHello")
        at += 1 + p[at]                              # compression methods
        if at == n:
            return HELLO_WHOLE                       # no extensions
        if at + 2 > n:
            return self._refuse("malformed ClientHello")
        end = at + 2 + _two(p + at)
        at += 2
        if end != n:
            return self._refuse("malformed ClientHello")
        while at < end:
            if end - at < 4:
                return self._refuse("malformed ClientHello")
            length = _two(p + at + 2)
            if end - at - 4 < length:
                return self._refuse("malformed ClientHello")
            if _two(p + at) == SERVER_NAME:
                return self._name(p + at + 4, length)
            at += 4 + length
        return HELLO_WHOLE

    cdef int _name(self, const unsigned char* p, Py_ssize_t n) except -1:
        """The host name of the extension (RFC 6066 section 3): a list with one entry of type 0."""
        cdef Py_ssize_t i, length
        cdef unsigned char c
        if n < 5 or _two(p) != n - 2 or p[2] != 0 or _two(p + 3) != n - 5 or n - 5 > 255 or n == 5:
            return self._refuse("malformed server name")
        length = n - 5
        for i in range(length):
            c = p[5 + i]
            if not (48 <= c <= 57 or 65 <= c <= 90 or 97 <= c <= 122 or c in b"-._"):
                return self._refuse("malformed server name")
        self.server_name = (<const char*>p + 5)[:length].decode("ascii").lower()
        return HELLO_WHOLE
