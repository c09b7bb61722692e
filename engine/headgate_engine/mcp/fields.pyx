# cython: boundscheck=False
"""Request fields of MCP calls that the engine passes on; see fields.pxd. boundscheck is off: spans lie in their head.

What is not plain is no error: Python serves it, and refuses what has to be refused.
"""

from libc.stdint cimport uint8_t

from headgate_engine.context.headers cimport (
    H_ACCEPT, H_AUTHORIZATION, H_CONTENT_ENCODING, H_CONTENT_LENGTH, H_CONTENT_TYPE, H_COOKIE, H_EXPECT, H_HOST, H_OTHER,
    H_PROXY_AUTHORIZATION, HeaderSpan, MessageHead, SPAN_DROPPED)
from headgate_engine.context.request cimport RequestContext
from headgate_engine.peek.rpc cimport Message
from headgate_engine.wire.scan cimport same_lower

cdef extern from "<string.h>" nogil:
    void* memmem(const void* haystack, size_t n, const void* needle, size_t m)

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    void *memmem(const void *, size_t, const void *, size_t);
    #endif
    """

from headgate_engine.peek.rpc import NotAMessage, parse

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


cdef int copy_fields(RequestContext ctx, MessageHead to) except -1:
    cdef MessageHead head = ctx.head
    cdef HeaderSpan* span
    cdef int i
    for i in range(head.count):
        span = &head.spans[i]
        if span.flags & SPAN_DROPPED or span.id in (
                H_HOST, H_CONTENT_LENGTH, H_ACCEPT, H_CONTENT_TYPE, H_CONTENT_ENCODING, H_AUTHORIZATION, H_COOKIE, H_EXPECT,
                H_PROXY_AUTHORIZATION):
            continue
        if span.id == H_OTHER and (named(head, span, <bytes>_dropped[0]) or named(head, span, <bytes>_dropped[1])
                                   or named(head, span, <bytes>_dropped[2])):
            continue
        # Where an expression found the credential, it is still in its field.
        if ctx.jwt_token and holds(head, span, ctx.jwt_token) or ctx.api_key_text and holds(head, span, ctx.api_key_text):
            continue
        to.add_field(head.data + span.name_off, span.name_len, head.data + span.value_off, span.value_len)
    return 0


cdef bint add_mirrored(MessageHead to, Message message) except -1:
    cdef bytes method = plain_value(message.method)
    cdef bytes name
    if method is None:
        return False
    to.add_field(b"mcp-method", 10, method, len(method))
    found = message.name
    if found is None:
        return True
    name = plain_value(found)
    if name is None:
        return False
    to.add_field(b"mcp-name", 8, name, len(name))
    return True


cdef bytes plain_value(str text):
    """The text as a field's value, None where it has to be coded for that (headgate.dialect.mcp.mirrored)."""
    if not text or not text.isascii() or not text.isprintable() or text[0] == " " or text[len(text) - 1] == " ":
        return None
    if text.startswith("=?base64?"):
        return None
    return text.encode("ascii")


def plain_head(RequestContext ctx not None):
    """The session id of a request whose head the engine passes on, None for one that Python serves; for tests."""
    cdef ClientHead found = ClientHead.__new__(ClientHead)
    found.read(ctx.head)
    return found.session_id if found.plain else None


def target_head(RequestContext ctx not None, Message message not None):
    """The head that a target gets; None where a field cannot hold what the message says. For tests."""
    cdef MessageHead head = MessageHead()
    copy_fields(ctx, head)
    return head if add_mirrored(head, message) else None


cpdef bint is_message(bytes data) except -1:
    """Whether the data of an event is a message."""
    try:
        parse(data)
    except NotAMessage:
        return False
    return True
