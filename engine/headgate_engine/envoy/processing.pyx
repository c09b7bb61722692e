"""The messages to and from an external processor; see processing.pyi."""

from headgate_engine.context.headers cimport SPAN_DROPPED, HeaderSpan, MessageHead
from headgate_engine.envoy.header_edits cimport OF_REQUEST, OF_RESPONSE, OF_TRAILERS, HeaderEdits, apply_edits, bad
from headgate_engine.envoy.wire_format cimport WIRE_BYTES, WIRE_VARINT, WireCursor, WireField, cursor_of, next_field
from headgate_engine.log.protobuf cimport close_message, open_message, put_bytes, put_varint
from headgate_engine.wire.buffer cimport ByteBuffer, put

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

NOTHING, ITSELF = ANSWERS_NOTHING, ANSWERS_ITSELF
HEADS = frozenset((REQUEST_HEAD, RESPONSE_HEAD))
BODIES = frozenset((REQUEST_BODY, RESPONSE_BODY))
OF_RESPONSES = frozenset((RESPONSE_HEAD, RESPONSE_BODY, RESPONSE_TRAILERS))

cdef enum:
    # Tags of ProcessingRequest.
    TO_REQUEST_HEAD = 0x12
    TO_RESPONSE_HEAD = 0x1A
    TO_REQUEST_BODY = 0x22
    TO_RESPONSE_BODY = 0x2A
    TO_REQUEST_TRAILERS = 0x32
    TO_RESPONSE_TRAILERS = 0x3A
    # Of HttpHeaders and HttpTrailers: their HeaderMap, whose only field has the same tag; of HttpBody.
    FIRST = 0x0A
    BODY_ENDS = 0x10
    # Of HeaderValue.
    KEY = 0x0A
    RAW_VALUE = 0x1A
    PREFIX = 5                # of a message of gRPC: a flag and its length


cdef ByteBuffer begun():
    cdef ByteBuffer out = ByteBuffer()
    put(out, "\0\0\0\0\0", PREFIX)
    return out


cdef int put_prefix(char* at, Py_ssize_t n) except -1:
    at[0], at[1], at[2], at[3], at[4] = 0, <char>(n >> 24), <char>(n >> 16), <char>(n >> 8), <char>n
    return 0


cdef int varint_size(Py_ssize_t value) noexcept:
    cdef int found = 1
    while value >= 128:
        value >>= 7
        found += 1
    return found


cdef bytes finished(ByteBuffer out, bytes more):
    """The message with its prefix. `more`: further fields."""
    put(out, more, len(more))
    put_prefix(out.data, out.length - PREFIX)
    return out.data[:out.length]


cdef int put_field(ByteBuffer out, const char* name, Py_ssize_t name_size, const char* value, Py_ssize_t size) except -1:
    """Writes an entry of a HeaderMap, its name in lower case."""
    cdef Py_ssize_t at = 0, i
    cdef Py_ssize_t content = name_size + size + 4
    cdef char* written
    if name_size < 128 and content < 128:
        out.append_byte(FIRST)
        out.append_byte(<char>content)
    else:
        at = open_message(out, FIRST)
    put_bytes(out, KEY, name, name_size)
    written = out.data + out.length - name_size
    for i in range(name_size):
        if 65 <= <uint8_t>written[i] <= 90:
            written[i] = written[i] + 32
    put_bytes(out, RAW_VALUE, value, size)
    return close_message(out, at) if at else 0


cdef int put_fields(ByteBuffer out, MessageHead head) except -1:
    cdef HeaderSpan* span
    cdef int i
    for i in range(head.count):
        span = head.spans + i
        if not span.flags & SPAN_DROPPED:
            put_field(out, head.data + span.name_off, span.name_len, head.data + span.value_off, span.value_len)
    return 0


cdef int put_length(ByteBuffer out, MessageHead head) except -1:
    """Writes the length, which is no field of a head here."""
    cdef bytes length
    if head.content_length < 0:
        return 0
    length = b"%d" % head.content_length
    return put_field(out, "content-length", 14, length, len(length))


def request_head(MessageHead head not None, bint secure, bint last, bytes more not None=b""):
    cdef ByteBuffer out = begun()
    cdef Py_ssize_t message = open_message(out, TO_REQUEST_HEAD)
    cdef Py_ssize_t fields = open_message(out, FIRST)
    put_field(out, ":method", 7, head.data + head.method_off, head.method_len)
    put_field(out, ":path", 5, head.data + head.target_off, head.target_len)
    put_field(out, ":authority", 10, head.data + head.authority_off, head.authority_len)
    put_field(out, ":scheme", 7, "https" if secure else "http", 5 if secure else 4)
    put_fields(out, head)
    put_length(out, head)
    close_message(out, fields)
    if last:
        put(out, "\x18\x01", 2)
    close_message(out, message)
    return finished(out, more)


def response_head(MessageHead head not None, bint last, bytes more not None=b""):
    cdef ByteBuffer out = begun()
    cdef bytes status = b"%d" % head.status
    cdef Py_ssize_t message = open_message(out, TO_RESPONSE_HEAD)
    cdef Py_ssize_t fields = open_message(out, FIRST)
    put_field(out, ":status", 7, status, len(status))
    put_fields(out, head)
    put_length(out, head)
    close_message(out, fields)
    if last:
        put(out, "\x18\x01", 2)
    close_message(out, message)
    return finished(out, more)


def body_part(bytes data not None, bint response, bint last, bytes more not None=b""):
    cdef ByteBuffer head = ByteBuffer()
    cdef Py_ssize_t size = len(data), content
    cdef bytes found
    cdef char* at
    content = (1 + varint_size(size) + size if size else 0) + (2 if last else 0)
    head.append_byte(TO_RESPONSE_BODY if response else TO_REQUEST_BODY)
    put_varint(head, content)
    if size:
        head.append_byte(FIRST)
        put_varint(head, size)
    # In its place at once: bodies are large.
    found = PyBytes_FromStringAndSize(NULL, PREFIX + head.length + size + (2 if last else 0) + len(more))
    at = found
    put_prefix(at, len(found) - PREFIX)
    at += PREFIX
    memcpy(at, head.data, head.length)
    at += head.length
    memcpy(at, <const char*>data, size)
    at += size
    if last:
        at[0], at[1] = BODY_ENDS, 1
        at += 2
    memcpy(at, <const char*>more, len(more))
    return found


def trailer_part(MessageHead trailers not None, bint response, bytes more not None=b""):
    cdef ByteBuffer out = begun()
    cdef Py_ssize_t message = open_message(out, TO_RESPONSE_TRAILERS if response else TO_REQUEST_TRAILERS)
    cdef Py_ssize_t fields = open_message(out, FIRST)
    put_fields(out, trailers)
    close_message(out, fields)
    close_message(out, message)
    return finished(out, more)


# -- answers -------------------------------------------------------------------------------------------------------------
def read_answer(bytes message not None):
    cdef ProcessorAnswer found = ProcessorAnswer.__new__(ProcessorAnswer)
    found.source = message
    found.read(message, len(message))
    return found


cdef class ProcessorAnswer:
    def __init__(self, *args, **kwargs):
        raise TypeError("read_answer() makes answers")

    @property
    def body(self):
        return self.source[self.body_at:self.body_at + self.body_size]

    @property
    def edits_head(self):
        return self.wanted is not None and bool(self.wanted.edits or self.wanted.removed)

    def edit_request(self, MessageHead head not None):
        if self.wanted is not None:
            apply_edits(self.wanted, head, OF_REQUEST)

    def edit_response(self, MessageHead head not None):
        if self.wanted is not None:
            apply_edits(self.wanted, head, OF_RESPONSE)

    def edit_trailers(self, MessageHead head not None):
        if self.wanted is not None:
            apply_edits(self.wanted, head, OF_TRAILERS)

    cdef int read(self, const char* p, Py_ssize_t n) except -1:
        cdef WireCursor cursor = cursor_of(p, n), inner
        cdef WireField field, part
        cdef int found
        while True:
            found = next_field(&cursor, &field)
            if found <= 0:
                return bad("the message") if found < 0 else 0
            if field.kind != WIRE_BYTES or field.number > 10:
                continue
            if field.number >= ANSWERS_ITSELF:
                # Part of it is read elsewhere.
                self.more = True
                if field.number == ANSWERS_ITSELF:
                    self.begin(ANSWERS_ITSELF)
                continue
            self.begin(<int>field.number)
            inner = cursor_of(field.data, field.size)
            while True:
                found = next_field(&inner, &part)
                if found <= 0:
                    break
                if part.number == 1 and part.kind == WIRE_BYTES:
                    if self.part >= REQUEST_TRAILERS:
                        self.read_edits(part.data, part.size)
                    else:
                        self.read_common(part.data, part.size)
            if found < 0:
                bad("the message")

    cdef int begin(self, int part) except -1:
        """The last one of several parts counts; one that comes twice is put together."""
        if self.part != part:
            self.part, self.wanted = part, None
            self.status = self.mutation = 0
            self.body_at, self.body_size, self.last = 0, 0, False
        return 0

    cdef int read_edits(self, const char* p, Py_ssize_t n) except -1:
        if self.wanted is None:
            self.wanted = HeaderEdits.__new__(HeaderEdits)
        return self.wanted.read_mutation(p, n)

    cdef int read_common(self, const char* p, Py_ssize_t n) except -1:
        cdef WireCursor cursor = cursor_of(p, n)
        cdef WireField field
        cdef int found
        while True:
            found = next_field(&cursor, &field)
            if found <= 0:
                return bad("a response") if found < 0 else 0
            if field.number == 1 and field.kind == WIRE_VARINT:
                self.status = <int>field.value
            elif field.kind == WIRE_BYTES and field.number == 2:
                self.read_edits(field.data, field.size)
            elif field.kind == WIRE_BYTES and field.number == 3:
                self.read_body(field.data, field.size)

    cdef int note_body(self, const char* p, Py_ssize_t n) except -1:
        self.body_at, self.body_size = p - <const char*>self.source, n
        return 0

    cdef int read_body(self, const char* p, Py_ssize_t n) except -1:
        cdef WireCursor cursor = cursor_of(p, n), inner
        cdef WireField field, part
        cdef int found
        while True:
            found = next_field(&cursor, &field)
            if found <= 0:
                return bad("a body") if found < 0 else 0
            if field.number == 1 and field.kind == WIRE_BYTES:
                self.mutation, self.last = 1, False
                self.note_body(field.data, field.size)
            elif field.number == 2 and field.kind == WIRE_VARINT:
                self.mutation, self.body_size, self.last = 2, 0, False
            elif field.number == 3 and field.kind == WIRE_BYTES:
                if self.mutation != 3:
                    self.mutation, self.body_size, self.last = 3, 0, False
                inner = cursor_of(field.data, field.size)
                while True:
                    found = next_field(&inner, &part)
                    if found <= 0:
                        break
                    if part.number == 1 and part.kind == WIRE_BYTES:
                        self.note_body(part.data, part.size)
                    elif part.number == 2 and part.kind == WIRE_VARINT:
                        self.last = part.value != 0
                if found < 0:
                    bad("a body")
