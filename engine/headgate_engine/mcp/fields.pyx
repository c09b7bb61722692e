# cython: boundscheck=False
"""Request fields of MCP calls that the engine passes on; see fields.pxd. boundscheck is off: spans lie in their head.

A request that is not plain is no error: Python serves or refuses it.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcmp

from headgate_engine.context.headers cimport (
    H_ACCEPT, H_AUTHORIZATION, H_CONTENT_ENCODING, H_CONTENT_LENGTH, H_CONTENT_TYPE, H_COOKIE, H_EXPECT, H_HOST, H_OTHER,
    H_PROXY_AUTHORIZATION, HeaderSpan, MessageHead, SPAN_DROPPED)
from headgate_engine.context.request cimport RequestContext
from headgate_engine.peek.rpc cimport memmem, RpcMessage, message_of
from headgate_engine.wire.scan cimport same_lower

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

from headgate_engine.peek.rpc import NotAMessage

# Revisions with sessions (headgate.dialect.mcp.versions.LEGACY).
VERSIONS = frozenset((b"2024-11-05", b"2025-03-26", b"2025-06-18", b"2025-11-25"))
# Fields whose requests Python serves: they change the body (trace context), repeat it, or come from another worker.
BEGINNINGS = (b"mcp-method", b"mcp-name", b"mcp-param-", b"traceparent", b"tracestate", b"baggage", b"x-gw-relay-")
# Beside those that have a number: what describes the original body, and the client's credentials.
DROPPED = (b"accept-encoding", b"x-api-key", b"mcp-session-id")
SESSION = b"mcp-session-id"
cdef bytes VERSION = b"mcp-protocol-version"
cdef frozenset _versions = VERSIONS
cdef tuple _beginnings = BEGINNINGS
cdef tuple _dropped = DROPPED


cdef inline bint named(MessageHead head, HeaderSpan* span, bytes name) noexcept:
    return span.name_len == len(name) and same_lower(head.data + span.name_off, name, span.name_len)


cdef inline bint holds(MessageHead head, HeaderSpan* span, bytes text) noexcept:
    return memmem(head.data + span.value_off, span.value_len, <const char*>text, len(text)) != NULL


cdef class ClientHead:
    cdef int read(self, MessageHead head) except -1:
        cdef HeaderSpan* span
        cdef bint accepts = False, typed = False, versioned = False
        cdef int i
        self.plain = False
        self.session_id = None
        for i in range(head.count):
            span = &head.spans[i]
            if span.flags & SPAN_DROPPED:
                continue
            if span.id == H_ACCEPT:
                if not accepts and holds(head, span, b"application/json") and holds(head, span, b"text/event-stream"):
                    accepts = True
                elif not accepts:
                    return 0
            elif span.id == H_CONTENT_TYPE:
                if typed or span.value_len < 16 or not same_lower(head.data + span.value_off, b"application/json", 16):
                    return 0
                typed = True
            elif span.id != H_OTHER:
                continue
            elif named(head, span, SESSION):
                if self.session_id is not None:
                    return 0
                self.session_id = head._text(span.value_off, span.value_len)
            elif named(head, span, VERSION):
                if versioned or head.data[span.value_off:span.value_off + span.value_len] not in _versions:
                    return 0
                versioned = True
            elif special(head, span):
                return 0
        self.plain = accepts and typed and self.session_id is not None
        return 0


cdef bint special(MessageHead head, HeaderSpan* span) except -1:
    cdef uint8_t first = <uint8_t>head.data[span.name_off] | 32
    if first not in (b"m", b"t", b"b", b"x"):
        return False
    for name in _beginnings:
        if span.name_len >= len(<bytes>name) and same_lower(head.data + span.name_off, <bytes>name, len(<bytes>name)):
            return True
    return False


cdef int copy_fields(RequestContext ctx, MessageHead to, tuple without) except -1:
    cdef MessageHead head = ctx.head
    cdef HeaderSpan* span
    cdef int i
    cdef bint kept
    for i in range(head.count):
        span = &head.spans[i]
        if span.flags & SPAN_DROPPED or span.id in (
                H_HOST, H_CONTENT_LENGTH, H_ACCEPT, H_CONTENT_TYPE, H_CONTENT_ENCODING, H_AUTHORIZATION, H_COOKIE, H_EXPECT,
                H_PROXY_AUTHORIZATION):
            continue
        if span.id == H_OTHER and (named(head, span, <bytes>_dropped[0]) or named(head, span, <bytes>_dropped[1])
                                   or named(head, span, <bytes>_dropped[2])):
            continue
        kept = True
        for name in without:
            kept = kept and not named(head, span, <bytes>name)
        if not kept:
            continue
        # Where an expression found the credential, it is still in its field.
        if ctx.jwt_token and holds(head, span, ctx.jwt_token) or ctx.api_key_text and holds(head, span, ctx.api_key_text):
            continue
        to.add_field(head.data + span.name_off, span.name_len, head.data + span.value_off, span.value_len)
    return 0


cdef bint add_mirrored(MessageHead to, RpcMessage message, str name) except -1:
    return add_text(to, b"mcp-method", message.method) and (name is None or add_text(to, b"mcp-name", name))


cdef bint add_text(MessageHead to, bytes field, str text) except -1:
    """Adds a field; False for a text that has to be coded for that (headgate.dialect.mcp.mirrored): only visible ASCII, and
    spaces within.
    """
    cdef Py_ssize_t n = PyUnicode_GET_LENGTH(text)
    cdef const char* p = <const char*>PyUnicode_DATA(text)
    cdef Py_ssize_t i
    if n == 0 or not PyUnicode_IS_ASCII(text) or p[0] == 32 or p[n - 1] == 32 or n >= 9 and memcmp(p, b"=?base64?", 9) == 0:
        return False
    for i in range(n):
        if not 32 <= <uint8_t>p[i] < 127:
            return False
    to.add_field(field, len(field), p, n)
    return True


cpdef bint is_message(bytes data) except -1:
    """Whether the data of an event is a message."""
    try:
        message_of(data)
    except NotAMessage:
        return False
    return True
