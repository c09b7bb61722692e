"""Replaces the values of credentials in the query of a logged target. Names are compared decoded, in any case."""

from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.scan cimport same_lower

from libc.string cimport memchr

from urllib.parse import unquote_to_bytes

# Query parameters that contain credentials. `key` is a common word: only values as long as a credential count.
CREDENTIALS = (
    "access_token", "refresh_token", "id_token", "token", "auth", "authorization", "api_key", "apikey", "api-key",
    "x-api-key", "client_secret", "client_assertion", "secret", "password", "passwd", "code", "code_verifier",
    "assertion", "sig", "signature", "x-amz-signature", "x-amz-credential", "x-amz-security-token",
    "x-goog-signature", "x-goog-credential", "auth_token", "private_token", "session_token", "subscription-key",
    "jwt", "pwd", "key",
)
REDACTED = "<redacted>"
cdef enum:
    # Shortest value of the parameter `key` that counts as a credential.
    LONG_KEY = 16

cdef list SECRET_NAMES = [name.encode() for name in CREDENTIALS]
# Names of the configured credential locations, in lower case, to the number of objects that hide them.
cdef dict CONFIGURED_NAMES = {}


cdef class HiddenParameter:
    def __init__(self, str name not None):
        if self.name is not None:
            raise ValueError("a parameter is hidden once")
        if name:
            self.name = name.lower().encode()
            CONFIGURED_NAMES[self.name] = CONFIGURED_NAMES.get(self.name, 0) + 1

    def __dealloc__(self):
        if self.name is not None:
            count = CONFIGURED_NAMES[self.name] - 1
            if count:
                CONFIGURED_NAMES[self.name] = count
            else:
                del CONFIGURED_NAMES[self.name]


def redacted(str target not None):
    """Return a target without the values of credentials in its query."""
    cdef ByteBuffer out
    cdef bytes raw = target.encode("utf-8", "surrogateescape")
    cdef Py_ssize_t query = raw.find(b"?")
    if query < 0:
        return target
    out = ByteBuffer()
    redact(out, raw, <const char*>raw + query + 1, <const char*>raw + len(raw))
    return out.take().decode("utf-8", "surrogateescape")


cdef bint is_secret(const char* p, const char* equals, const char* stop) except -1:
    """Return whether the parameter p..equals with the value equals+1..stop contains a credential."""
    cdef Py_ssize_t n = equals - p
    cdef bytes name, plain, raw
    if equals + 1 >= stop:
        return False
    if memchr(p, 37, n) != NULL:
        # Servers decode `t%6Fken` to `token`.
        plain = unquote_to_bytes(p[:n])
        if b"=" in plain or b"%" in plain and plain == p[:n]:
            return False
        return is_secret(plain, <const char*>plain + len(plain), <const char*>plain + len(plain) + (stop - equals))
    if CONFIGURED_NAMES:
        raw = p[:n]
        if raw.lower() in CONFIGURED_NAMES:
            return True
    for name in SECRET_NAMES:
        if len(name) == n and same_lower(p, name, n):
            return n != 3 or p[0] & 0xDF != 75 or stop - equals > LONG_KEY
    return False


cdef bint find_secret(const char* p, const char* stop, const char** value) except -1:
    """Return whether there is a credential in p..stop, and where the value of the first one begins.

    p..stop is what stands between two `&`. Some servers take `;` as a separator, too: a credential may be named behind one.
    """
    cdef const char* end
    cdef const char* equals
    while p < stop:
        end = <const char*>memchr(p, 59, stop - p)
        if end == NULL:
            end = stop
        equals = <const char*>memchr(p, 61, end - p)
        # To servers that know no `;`, all of the rest is the value.
        if equals != NULL and is_secret(p, equals, stop):
            value[0] = equals + 1
            return True
        p = end + 1
    return False


cdef bint has_secret(const char* p, const char* end) except -1:
    cdef const char* stop
    cdef const char* value
    while p < end:
        stop = <const char*>memchr(p, 38, end - p)
        if stop == NULL:
            stop = end
        if find_secret(p, stop, &value):
            return True
        p = stop + 1
    return False


cdef int redact(ByteBuffer out, const char* start, const char* p, const char* end) except -1:
    """Append start..end, a target with a query that begins at p, without the values of credentials."""
    cdef const char* stop
    cdef const char* value
    cdef bytes mark = REDACTED.encode()
    while p < end:
        stop = <const char*>memchr(p, 38, end - p)
        if stop == NULL:
            stop = end
        if find_secret(p, stop, &value):
            out.append(start, value - start)
            out.append(mark, len(mark))
            start = stop
        p = stop + 1
    return out.append(start, end - start)
