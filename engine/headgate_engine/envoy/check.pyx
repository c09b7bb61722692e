"""What an authorization service is asked over gRPC, and what it allows; see check.pyi."""

from headgate_engine.clock cimport monotonic_ns, wall_ns
from headgate_engine.context.headers cimport H_COOKIE, SPAN_DROPPED, HeaderSpan, MessageHead
from headgate_engine.context.request cimport BODY_WHOLE, EDIT_APPEND, EDIT_REPLACE_OR_ADD, RequestContext
from headgate_engine.envoy.header_edits cimport OF_TRAILERS, HeaderEdits, apply_edits
from headgate_engine.envoy.wire_format cimport (
    WIRE_BYTES, WIRE_VARINT, WireCursor, WireField, cursor_of, is_utf8, next_field)
from headgate_engine.log.protobuf cimport close_message, open_message, put_bytes, put_varint
from headgate_engine.wire.buffer cimport ByteBuffer, put

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    # Of CheckRequest.
    ATTRIBUTES = 0x0A
    # Of AttributeContext.
    SOURCE = 0x0A
    DESTINATION = 0x12
    REQUEST = 0x22
    EXTENSIONS = 0x52
    TLS_SESSION = 0x62
    # Of AttributeContext.Peer, Address and SocketAddress.
    ADDRESS = 0x0A
    PRINCIPAL = 0x22
    CERTIFICATE = 0x2A
    SOCKET_ADDRESS = 0x0A
    ADDRESS_TEXT = 0x12
    PORT_VALUE = 0x18
    # Of AttributeContext.Request and Timestamp.
    TIME = 0x0A
    HTTP = 0x12
    SECONDS = 0x08
    NANOS = 0x10
    # Of AttributeContext.HttpRequest.
    ID = 0x0A
    METHOD = 0x12
    HEADERS = 0x1A
    PATH = 0x22
    HOST = 0x2A
    SCHEME = 0x32
    SIZE = 0x48
    PROTOCOL = 0x52
    BODY = 0x5A
    RAW_BODY = 0x62
    # Of an entry of a map.
    KEY = 0x0A
    VALUE = 0x12
    HTTP2 = 20
    NS = 1000000000

# Says whether the body that the service sees was cut, as Envoy does.
cdef bytes PARTIAL = b"x-envoy-auth-partial-body"


cdef bytes text_of(bytes raw):
    """As text of a message: bytes that are no UTF-8 are replaced."""
    return raw if is_utf8(raw, len(raw)) else raw.decode("utf-8", "replace").encode()


cdef int put_some(ByteBuffer out, char tag, bytes value) except -1:
    """Writes a text, if there is one."""
    value = text_of(value)
    return put_bytes(out, tag, value, len(value)) if value else 0


cdef int put_number(ByteBuffer out, char tag, uint64_t value) except -1:
    if value:
        out.append_byte(tag)
        put_varint(out, value)
    return 0


cdef bytes text_at(MessageHead head, int off, int n):
    return head.data[off:off + n] if n else b""


cdef class CheckQuestion:
    def __init__(self, sent, int64_t body_bytes, bint as_bytes, context not None):
        cdef ByteBuffer out = ByteBuffer()
        self.sent = None if sent is None else frozenset(name.encode() for name in sent)
        self.body_bytes = body_bytes
        self.as_bytes = as_bytes
        for name, value in dict(context).items():
            at = open_message(out, EXTENSIONS)
            put_some(out, KEY, name.encode())
            put_some(out, VALUE, value.encode())
            close_message(out, at)
        self.context = out.take()

    def encode(self, RequestContext ctx not None, bytes more not None=b"", ends=None):
        """Return the message."""
        cdef ByteBuffer out = ByteBuffer()
        cdef Py_ssize_t message = open_message(out, ATTRIBUTES)
        cdef str version = None
        cdef int64_t started
        if ends is None:
            self.put_ends(out, ctx)
            started = wall_ns() - monotonic_ns() + ctx.started_ns
        else:
            address, port, principal, certificate, own, own_port, name, moment, version = ends
            self.put_peer(out, SOURCE, address, port, (principal or "").encode(), (certificate or "").encode())
            self.put_peer(out, DESTINATION, own, own_port, b"", b"")
            put_name(out, name)
            started = moment.ns
        self.put_request(out, ctx, started, version)
        put(out, self.context, len(self.context))
        put(out, more, len(more))
        close_message(out, message)
        return out.data[:out.length]

    cdef int put_ends(self, ByteBuffer out, RequestContext ctx) except -1:
        """Where the request comes from and goes to."""
        cdef object connection = ctx.connection
        cdef bytes principal = b"", certificate = b""
        if connection is None:
            return 0
        identity = getattr(connection, "client_identity", None)
        if identity is not None:
            principal = (identity.spiffe_id or "").encode()
            certificate = (identity.certificate or "").encode()
        self.put_peer(out, SOURCE, connection.peer_host, connection.peer_port, principal, certificate)
        own, port = connection.local
        self.put_peer(out, DESTINATION, own, port, b"", b"")
        return put_name(out, connection.server_name)

    cdef int put_peer(self, ByteBuffer out, char tag, address, port, bytes principal, bytes certificate) except -1:
        cdef Py_ssize_t peer = open_message(out, tag)
        cdef Py_ssize_t outer, inner
        if address or port:
            outer = open_message(out, ADDRESS)
            inner = open_message(out, SOCKET_ADDRESS)
            put_some(out, ADDRESS_TEXT, (<str?>(address or "")).encode())
            put_number(out, PORT_VALUE, <uint64_t>(port or 0))
            close_message(out, inner)
            close_message(out, outer)
        put_some(out, PRINCIPAL, principal)
        put_some(out, CERTIFICATE, certificate)
        return close_message(out, peer)

    cdef int put_request(self, ByteBuffer out, RequestContext ctx, int64_t started_ns, str version) except -1:
        cdef MessageHead head = ctx.head
        cdef Py_ssize_t request = open_message(out, REQUEST)
        cdef Py_ssize_t at = open_message(out, TIME)
        cdef Py_ssize_t http
        cdef int i = head.find("x-request-id", 12, 0)
        cdef int64_t size = head.content_length
        cdef bytes body = ctx.body
        put_number(out, SECONDS, <uint64_t>(started_ns // NS))
        put_number(out, NANOS, <uint64_t>(started_ns % NS))
        close_message(out, at)
        http = open_message(out, HTTP)
        if i >= 0:
            put_some(out, ID, text_at(head, head.spans[i].value_off, head.spans[i].value_len))
        put_some(out, METHOD, text_at(head, head.method_off, head.method_len))
        self.put_headers(out, ctx)
        put_some(out, PATH, text_at(head, head.target_off, head.target_len))
        put_some(out, HOST, text_at(head, head.authority_off, head.authority_len))
        put_some(out, SCHEME, b"https" if ctx.secure else b"http")
        if ctx.body_state == BODY_WHOLE:
            size = 0 if body is None else len(body)
        put_number(out, SIZE, <uint64_t>size)
        if version is not None:
            put_some(out, PROTOCOL, b"HTTP/2" if version == "HTTP/2.0" else version.encode())
        elif head.minor_version == HTTP2:
            put_some(out, PROTOCOL, b"HTTP/2")       # as Envoy writes it
        else:
            put_some(out, PROTOCOL, b"HTTP/1.%d" % head.minor_version)
        if self.body_bytes >= 0 and body is not None:
            body = body[:self.body_bytes]
            if self.as_bytes:
                put_bytes(out, RAW_BODY, body, len(body))
            else:
                put_some(out, BODY, body)
        close_message(out, http)
        return close_message(out, request)

    cdef int put_headers(self, ByteBuffer out, RequestContext ctx) except -1:
        """Writes the headers by name. Values of one name are joined (RFC 9110 section 5.2)."""
        cdef MessageHead head = ctx.head
        cdef HeaderSpan* span
        cdef bytes name, value
        cdef dict found = {
            b":method": text_at(head, head.method_off, head.method_len),
            b":path": text_at(head, head.target_off, head.target_len),
            b":authority": text_at(head, head.authority_off, head.authority_len),
            b":scheme": b"https" if ctx.secure else b"http",
        }
        cdef bint cut
        cdef int i
        if self.sent is not None:
            found = {name: value for name, value in found.items() if name in self.sent}
        for i in range(head.count):
            span = head.spans + i
            if span.flags & SPAN_DROPPED:
                continue
            name = head.data[span.name_off:span.name_off + span.name_len].lower()
            if self.sent is not None and name not in self.sent:
                continue
            value = text_at(head, span.value_off, span.value_len)
            if name in found:
                value = <bytes>found[name] + (b"; " if span.id == H_COOKIE else b", ") + value
            found[name] = value
        if head.content_length >= 0 and (self.sent is None or b"content-length" in self.sent):
            found[b"content-length"] = b"%d" % head.content_length
        if self.body_bytes >= 0 and ctx.body is not None:
            cut = ctx.body_state != BODY_WHOLE or len(ctx.body) > self.body_bytes
            found[PARTIAL] = b"true" if cut else b"false"
        for name, value in found.items():
            self.put_entry(out, name, text_of(value))
        return 0

    cdef int put_entry(self, ByteBuffer out, bytes name, bytes value) except -1:
        cdef Py_ssize_t size = len(name) + len(value) + 4, at
        if size < 128:
            out.append_byte(HEADERS)
            out.append_byte(<char>size)
            put_bytes(out, KEY, name, len(name))
            return put_bytes(out, VALUE, value, len(value))
        at = open_message(out, HEADERS)
        put_bytes(out, KEY, name, len(name))
        put_bytes(out, VALUE, value, len(value))
        return close_message(out, at)


cdef int put_name(ByteBuffer out, name) except -1:
    """Writes the name that the client asked for in its TLS handshake, if there is one."""
    cdef Py_ssize_t at
    if not name:
        return 0
    at = open_message(out, TLS_SESSION)
    put_some(out, KEY, (<str?>name).encode("utf-8", "replace"))
    return close_message(out, at)


# -- answers -------------------------------------------------------------------------------------------------------------
def read_allowance(bytes message not None):
    cdef Allowance found = Allowance.__new__(Allowance)
    found.request = HeaderEdits.__new__(HeaderEdits)
    found.response = HeaderEdits.__new__(HeaderEdits)
    try:
        if not found.read(message, len(message)) or found.request.touches_start() or found.response.touches_start():
            return None
    except ValueError:
        return None
    return found


cdef class Allowance:
    def __init__(self, *args, **kwargs):
        raise TypeError("read_allowance() makes allowances")

    def apply(self, RequestContext ctx not None):
        apply_edits(self.request, ctx.head, OF_TRAILERS)
        if self.response.edits:
            if ctx.response_edits is None:
                ctx.response_edits = []
            ctx.response_edits.extend(self.response.edits)

    cdef int read(self, const char* p, Py_ssize_t n) except -1:
        """1 if the message says no more than that the request may go on, and what becomes of fields; 0 for any other."""
        cdef WireCursor cursor = cursor_of(p, n), inner
        cdef WireField field, part
        cdef int found
        while True:
            found = next_field(&cursor, &field)
            if found <= 0:
                return found == 0
            if field.kind != WIRE_BYTES or field.number != 1 and field.number != 3:
                return 0
            inner = cursor_of(field.data, field.size)
            while True:
                found = next_field(&inner, &part)
                if found < 0:
                    return 0
                if found == 0:
                    break
                if field.number == 1:                                     # status: its code and message
                    if part.number == 1 and part.kind == WIRE_VARINT and part.value == 0:
                        continue
                    if part.number != 2 or part.kind != WIRE_BYTES or not is_utf8(part.data, part.size):
                        return 0
                elif part.kind != WIRE_BYTES:                             # ok_response
                    return 0
                elif part.number == 2:
                    self.request.read_option(part.data, part.size, EDIT_REPLACE_OR_ADD)
                elif part.number == 5:
                    self.request.read_removed(part.data, part.size)
                elif part.number == 6:
                    self.response.read_option(part.data, part.size, EDIT_APPEND)
                else:
                    return 0
