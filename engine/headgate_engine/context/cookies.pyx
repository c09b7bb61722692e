"""Cookies of the gateway's own; see cookies.pxd.

A browser sends the session of one route to all routes of the host. Whoever has such a cookie is logged in, so no backend
gets one, whatever its route.
"""

from headgate_engine.context.headers cimport H_COOKIE, SPAN_SENSITIVE, MessageHead

cdef extern from "<string.h>" nogil:
    void* memmem(const void* haystack, size_t n, const void* needle, size_t m)

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    void *memmem(const void *, size_t, const void *, size_t);
    #endif
    """

# What the names of all cookies begin with that the `oidc` policy sets.
SESSION_PREFIX = "gw_oidc_"
cdef bytes prefix = SESSION_PREFIX.encode()


cdef bint has_session(const char* value, Py_ssize_t n) noexcept:
    return memmem(value, n, <const char*>prefix, len(prefix)) != NULL


cdef list kept_cookies(bytes value, object prefixes):
    parts = [part.strip(b" \t") for part in value.split(b";")]
    return [part for part in parts if part and not part.startswith(prefixes)]


cdef int drop_session_cookies(MessageHead head) except -1:
    cdef int i = head.find_id(H_COOKIE, 0)
    while i >= 0:
        if has_session(head.data + head.spans[i].value_off, head.spans[i].value_len):
            return drop_cookies(head, prefix)
        i = head.find_id(H_COOKIE, i + 1)
    return 0


cdef int drop_cookies(MessageHead head, object prefixes) except -1:
    cdef int i = head.find_id(H_COOKIE, 0)
    cdef bytes line
    parts = []
    while i >= 0:
        line = head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len]
        parts += kept_cookies(line, prefixes)
        i = head.find_id(H_COOKIE, i + 1)
    head.drop_id(H_COOKIE)
    if parts:
        line = b"; ".join(parts)
        head.add_field(b"cookie", 6, line, len(line))
        head.spans[head.count - 1].flags |= SPAN_SENSITIVE
    return 0


def without_session_cookies(str value not None):
    """Return the value of a cookie field without the gateway's own cookies; empty if it has no others."""
    return b"; ".join(kept_cookies(value.encode("latin-1"), prefix)).decode("latin-1")


def settle_cookies(MessageHead head not None):
    """Python face of drop_session_cookies()."""
    drop_session_cookies(head)
