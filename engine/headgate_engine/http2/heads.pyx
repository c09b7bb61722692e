# cython: boundscheck=False
"""Heads of HTTP/2; see heads.pxd.

boundscheck is off: offsets come from the decoder that filled the head, and tables have an entry for every byte and HeaderId.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memchr, memcmp, memcpy, memmove

from headgate_engine.context.authority cimport has_port, is_authority
from headgate_engine.context.headers cimport (
    H_CONNECTION, H_CONTENT_LENGTH, H_COOKIE, H_EXPECT, H_HOST, H_KEEP_ALIVE, H_OTHER, H_PROXY_AUTHENTICATE,
    H_PROXY_CONNECTION, H_TE, H_TRAILER, H_TRANSFER_ENCODING, H_UPGRADE, HEAD_CONNECT, HEAD_EXPECT_CONTINUE, HEAD_HAS_HOST,
    HEAD_IS_HEAD, HEAD_KEEP_ALIVE, HEAD_TE_TRAILERS, HEAD_UPGRADE, HeaderSpan, MessageHead, SPAN_ADDED, SPAN_CHECKED,
    SPAN_DROPPED, SPAN_SENSITIVE, header_id_of, sensitivity)
from headgate_engine.http2.hpack cimport INDEX_NEVER, INDEX_USUAL, HpackEncoder
from headgate_engine.http2.kinds cimport E_PROTOCOL
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.block cimport is_value
from headgate_engine.wire.scan cimport HG_CLASS, IS_TARGET, IS_TOKEN, all_of, put_lower, same_lower

from headgate_engine.context.field_names import FORBIDDEN_TRAILERS, REQUEST_FRAMING, encoded
from headgate_engine.errors import LocalProtocolError
from headgate_engine.http2.faults import StreamFault

cdef enum Pseudo:
    P_METHOD = 1
    P_SCHEME = 2
    P_PATH = 4
    P_AUTHORITY = 8
    P_PROTOCOL = 16
    P_STATUS = 32

cdef enum:
    MAX_LENGTH_DIGITS = 18
    MINOR_OF_2 = 20
    NAME_ROOM = 128       # names up to it are put into lower case on the stack

NOT_IN_TRAILERS = encoded(FORBIDDEN_TRAILERS)

cdef uint8_t[256] IS_LOWER_NAME          # by byte: what a field name may hold
cdef uint8_t[256] IS_OURS                # by HeaderId: fields that the connection writes itself


cdef int _fill() except -1:
    cdef int at
    for at in range(256):
        IS_LOWER_NAME[at] = HG_CLASS[at] & IS_TOKEN != 0 and not 65 <= at <= 90
        IS_OURS[at] = 0
    for name in encoded(REQUEST_FRAMING):
        IS_OURS[header_id_of(<bytes>name, len(<bytes>name))] = 1
    return 0


_fill()


cdef int refuse(str reason, int status=400) except -1:
    raise StreamFault(reason, E_PROTOCOL, status)


cdef int pseudo_of(const char* p, Py_ssize_t n) noexcept nogil:
    """Return the Pseudo of a name that begins with a colon; 0 for unknown ones."""
    if n == 5:
        return P_PATH if memcmp(p, b":path", 5) == 0 else 0
    if n == 7:
        if memcmp(p, b":method", 7) == 0:
            return P_METHOD
        if memcmp(p, b":scheme", 7) == 0:
            return P_SCHEME
        return P_STATUS if memcmp(p, b":status", 7) == 0 else 0
    if n == 9:
        return P_PROTOCOL if memcmp(p, b":protocol", 9) == 0 else 0
    return P_AUTHORITY if n == 10 and memcmp(p, b":authority", 10) == 0 else 0


cdef int take_pseudo(MessageHead head, int allowed, HeaderSpan* scheme, HeaderSpan* other) except -1:
    """Take the pseudo-header fields off the front. Return which there were. `other`: of :protocol, or :status."""
    cdef int seen = 0
    cdef int count = 0
    cdef int one
    cdef HeaderSpan* span
    while count < head.count:
        span = &head.spans[count]
        if span.name_len == 0 or head.data[span.name_off] != c':':
            break
        one = pseudo_of(head.data + span.name_off, span.name_len)
        if not one & allowed:
            refuse("pseudo-header field that does not belong here")
        if seen & one:
            refuse("pseudo-header field twice")
        seen |= one
        if one == P_METHOD:
            head.method_off, head.method_len = span.value_off, span.value_len
        elif one == P_PATH:
            head.target_off, head.target_len = span.value_off, span.value_len
        elif one == P_AUTHORITY:
            head.authority_off, head.authority_len = span.value_off, span.value_len
        elif one == P_SCHEME:
            scheme[0] = span[0]
        else:
            other[0] = span[0]
        count += 1
    if count:
        head.count -= count
        memmove(head.spans, head.spans + count, head.count * sizeof(HeaderSpan))
    return seen


cdef int take_fields(MessageHead head) except -1:
    """Check names and values of all fields, and read those of the message itself."""
    cdef int i
    cdef uint32_t j
    cdef int cookies = 0
    cdef HeaderSpan* span
    cdef const char* name
    cdef const char* value
    for i in range(head.count):
        span = &head.spans[i]
        name = head.data + span.name_off
        value = head.data + span.value_off
        if span.name_len == 0:
            refuse("field without a name")
        for j in range(span.name_len):
            if not IS_LOWER_NAME[<uint8_t>name[j]]:
                if name[0] == c':':
                    refuse("pseudo-header field behind other fields")
                refuse("invalid field name")
        if not is_value(value, span.value_len):
            refuse("control character in a field value")
        if span.value_len and (is_blank(value[0]) or is_blank(value[span.value_len - 1])):
            refuse("field value with blanks around it")
        span.id = <uint8_t>header_id_of(name, span.name_len)
        span.flags |= sensitivity(span.id, name, span.name_len)
        if span.id == H_OTHER:
            continue
        if span.id == H_COOKIE:
            cookies += 1
        elif span.id == H_CONTENT_LENGTH:
            take_length(head, span)
        elif span.id == H_TE:
            if span.value_len != 8 or not same_lower(value, b"trailers", 8):
                refuse("te has other members than trailers")
            head.flags |= HEAD_TE_TRAILERS
            span.flags |= SPAN_DROPPED
        elif span.id == H_TRAILER:
            span.flags |= SPAN_DROPPED
        elif span.id in (H_CONNECTION, H_KEEP_ALIVE, H_PROXY_CONNECTION, H_TRANSFER_ENCODING, H_UPGRADE):
            refuse("field of a connection of HTTP/1.1")
    if cookies > 1:
        join_cookies(head)
    head.minor_version = MINOR_OF_2
    head.flags |= HEAD_KEEP_ALIVE
    return 0


cdef inline bint is_blank(char c) noexcept nogil:
    return c == 32 or c == 9


cdef int take_length(MessageHead head, HeaderSpan* span) except -1:
    """Read content-length: once, in its simplest form, as in HTTP/1.1."""
    cdef uint32_t i
    cdef int64_t length = 0
    cdef const char* value = head.data + span.value_off
    if head.content_length >= 0:
        refuse("more than one content-length")
    if span.value_len == 0 or span.value_len > MAX_LENGTH_DIGITS:
        refuse("invalid content-length")
    for i in range(span.value_len):
        if not 48 <= value[i] <= 57:
            refuse("invalid content-length")
        length = length * 10 + (value[i] - 48)
    head.content_length = length
    span.flags |= SPAN_DROPPED
    return 0


cdef int join_cookies(MessageHead head) except -1:
    """Make one field of the crumbs (RFC 9113 section 8.2.3)."""
    cdef int i
    cdef int first = -1
    cdef uint32_t total = 0
    cdef uint32_t start
    cdef HeaderSpan* span
    for i in range(head.count):
        if head.spans[i].id == H_COOKIE:
            total += head.spans[i].value_len + 2
    head.reserve(total)
    start = head.length
    for i in range(head.count):
        span = &head.spans[i]
        if span.id != H_COOKIE:
            continue
        if first < 0:
            first = i
        else:
            memcpy(head.data + head.length, b"; ", 2)
            head.length += 2
            span.flags |= SPAN_DROPPED
        memcpy(head.data + head.length, head.data + span.value_off, span.value_len)
        head.length += span.value_len
    head.spans[first].value_off = start
    head.spans[first].value_len = head.length - start
    return 0


cdef int accept_request(MessageHead head, bint extended) except -1:
    cdef HeaderSpan scheme, protocol
    cdef bint connect
    cdef int seen = take_pseudo(head, P_METHOD | P_SCHEME | P_PATH | P_AUTHORITY | P_PROTOCOL, &scheme, &protocol)
    cdef const char* method = head.data + head.method_off
    if not seen & P_METHOD or head.method_len == 0 or not all_of(method, head.method_len, IS_TOKEN):
        refuse("request without a method")
    connect = head.method_len == 7 and memcmp(method, b"CONNECT", 7) == 0
    if seen & P_PROTOCOL and not (connect and extended):
        refuse("extended CONNECT is not allowed here")
    if seen & P_SCHEME and not is_web(head.data + scheme.value_off, scheme.value_len):
        refuse("scheme that is neither http nor https")
    if seen & P_AUTHORITY and not is_authority(head.data + head.authority_off, head.authority_len):
        refuse("invalid authority")
    if connect and not seen & P_PROTOCOL:
        if seen != P_METHOD | P_AUTHORITY or not has_port(head.data + head.authority_off, head.authority_len):
            refuse("CONNECT has a method and an authority with a port, and nothing else")
        head.flags |= HEAD_CONNECT
        head.target_off = head.authority_off
        head.target_len = head.path_len = head.authority_len
    else:
        if ~seen & (P_SCHEME | P_PATH) or seen & P_PROTOCOL and not seen & P_AUTHORITY:
            refuse("request without all of its pseudo-header fields")
        take_path(head)
    if head.method_len == 4 and memcmp(method, b"HEAD", 4) == 0:
        head.flags |= HEAD_IS_HEAD
    take_fields(head)
    request_fields(head)
    if seen & P_PROTOCOL:
        as_upgrade(head, &protocol)
    head.parsed = head.length
    return 0


cdef bint is_web(const char* p, Py_ssize_t n) noexcept nogil:
    return n == 4 and same_lower(p, b"http", 4) or n == 5 and same_lower(p, b"https", 5)


cdef int take_path(MessageHead head) except -1:
    cdef const char* target = head.data + head.target_off
    cdef const char* query
    if not all_of(target, head.target_len, IS_TARGET):
        refuse("invalid character in the path")
    if head.target_len == 0 or target[0] != c'/':
        if head.target_len != 1 or target[0] != c'*' or head.method_len != 7 \
                or memcmp(head.data + head.method_off, b"OPTIONS", 7) != 0:
            refuse("path does not begin with a slash")
    query = <const char*>memchr(target, 63, head.target_len)
    head.path_len = head.target_len if query == NULL else <uint32_t>(query - target)
    return 0


cdef int request_fields(MessageHead head) except -1:
    """Read host and expect, as in HTTP/1.1."""
    cdef int i
    cdef HeaderSpan* span
    for i in range(head.count):
        span = &head.spans[i]
        if span.id == H_HOST:
            if head.flags & HEAD_HAS_HOST:
                refuse("more than one host field")
            head.flags |= HEAD_HAS_HOST
            span.flags |= SPAN_DROPPED
            if not is_authority(head.data + span.value_off, span.value_len):
                refuse("invalid host")
            if head.authority_len == 0:
                head.authority_off, head.authority_len = span.value_off, span.value_len
            elif not same_text(head, span):
                refuse("host and authority differ")
        elif span.id == H_EXPECT:
            if span.value_len != 12 or not same_lower(head.data + span.value_off, b"100-continue", 12):
                refuse("unknown expectation", 417)
            span.flags |= SPAN_DROPPED
            head.flags |= HEAD_EXPECT_CONTINUE
        elif span.id == H_PROXY_AUTHENTICATE:
            span.flags |= SPAN_DROPPED
    if head.authority_len == 0:
        refuse("request without an authority")
    return 0


cdef bint same_text(MessageHead head, const HeaderSpan* span) noexcept:
    """Return whether a host field is the authority, in any case."""
    cdef uint32_t i
    cdef char one, other
    if span.value_len != head.authority_len:
        return False
    for i in range(span.value_len):
        one, other = head.data[span.value_off + i], head.data[head.authority_off + i]
        if one != other and not (one | 32 == other | 32 and 97 <= one | 32 <= 122):
            return False
    return True


cdef int as_upgrade(MessageHead head, const HeaderSpan* protocol) except -1:
    """Make an extended CONNECT what its handshake is in HTTP/1.1: a GET with an `upgrade` field, which no step sees."""
    cdef HeaderSpan span
    if protocol.value_len == 0 or not all_of(head.data + protocol.value_off, protocol.value_len, IS_TOKEN):
        refuse("invalid protocol")
    if protocol.value_len == 3 and same_lower(head.data + protocol.value_off, b"h2c", 3):
        refuse("HTTP/2 in a tunnel would bypass routes and policies", 501)
    head.method_off, head.method_len = head._put(b"GET", 3), 3
    span.name_off, span.name_len = head._put(b"upgrade", 7), 7
    span.value_off, span.value_len = protocol.value_off, protocol.value_len
    span.id = H_UPGRADE
    span.flags = SPAN_DROPPED
    head.push_span(span)
    head.flags |= HEAD_UPGRADE
    return 0


cdef int accept_response(MessageHead head) except -1:
    cdef HeaderSpan unused, status
    cdef const char* p
    cdef int i
    if take_pseudo(head, P_STATUS, &unused, &status) != P_STATUS or status.value_len != 3:
        refuse("response without a status", 502)
    p = head.data + status.value_off
    for i in range(3):
        if not 48 <= p[i] <= 57:
            refuse("malformed status code", 502)
    head.status = (p[0] - 48) * 100 + (p[1] - 48) * 10 + p[2] - 48
    if head.status < 100 or head.status == 101:
        refuse("status code that HTTP/2 does not have", 502)
    take_fields(head)
    head.parsed = head.length
    return 0


cdef int accept_trailers(MessageHead head) except -1:
    cdef int i
    cdef HeaderSpan unused
    cdef HeaderSpan* span
    take_pseudo(head, 0, &unused, &unused)
    take_fields(head)
    for i in range(head.count):
        span = &head.spans[i]
        if head.data[span.name_off:span.name_off + span.name_len] in NOT_IN_TRAILERS:
            span.flags |= SPAN_DROPPED
    head.parsed = head.length
    return 0


cdef int check_fields(MessageHead head) except -1:
    """Validate what steps have added before a byte is written: the encoder's table must stay that of the peer."""
    cdef int i
    cdef HeaderSpan* span
    for i in range(head.count):
        span = &head.spans[i]
        if span.flags & (SPAN_ADDED | SPAN_CHECKED | SPAN_DROPPED) != SPAN_ADDED:
            continue
        if span.name_len == 0 or not all_of(head.data + span.name_off, span.name_len, IS_TOKEN) \
                or not is_value(head.data + span.value_off, span.value_len):
            raise LocalProtocolError("an added field holds a character that cannot be sent")
    return 0


cdef int write_field(HpackEncoder encoder, ByteBuffer out, MessageHead head, const HeaderSpan* span) except -1:
    cdef char[NAME_ROOM] room
    cdef char* name = room
    cdef bytearray longer
    cdef int indexing = INDEX_NEVER if span.flags & SPAN_SENSITIVE else INDEX_USUAL
    if span.name_len > NAME_ROOM:
        longer = bytearray(span.name_len)
        name = longer
    put_lower(name, head.data + span.name_off, span.name_len)
    return encoder.field(out, name, span.name_len, head.data + span.value_off, span.value_len, indexing)


cdef int write_fields(HpackEncoder encoder, ByteBuffer out, MessageHead head, int64_t length) except -1:
    cdef int i
    cdef HeaderSpan* span
    cdef char[20] digits
    cdef int at = 20
    for i in range(head.count):
        span = &head.spans[i]
        if not span.flags & SPAN_DROPPED and not IS_OURS[span.id]:
            write_field(encoder, out, head, span)
    if length >= 0:
        while True:
            at -= 1
            digits[at] = <char>(48 + length % 10)
            length //= 10
            if length == 0:
                break
        encoder.field(out, b"content-length", 14, digits + at, 20 - at, INDEX_USUAL)
    return 0


cdef int write_request(
        HpackEncoder encoder, ByteBuffer out, MessageHead head, int64_t length, bint secure, bint upgrade) except -1:
    cdef HeaderSpan* protocol = NULL
    cdef int i
    if head.method_len == 0 or head.method_off >= head.parsed and not all_of(
            head.data + head.method_off, head.method_len, IS_TOKEN):
        raise LocalProtocolError("a request needs a method")
    if head.target_len == 0 or head.target_off >= head.parsed and not all_of(
            head.data + head.target_off, head.target_len, IS_TARGET):
        raise LocalProtocolError("a request target cannot hold this character")
    if head.authority_len == 0 or head.authority_off >= head.parsed and not all_of(
            head.data + head.authority_off, head.authority_len, IS_TARGET):
        raise LocalProtocolError("a request needs an authority")
    if upgrade:
        for i in range(head.count):
            if head.spans[i].id == H_UPGRADE:
                protocol = &head.spans[i]
        if protocol == NULL:
            raise LocalProtocolError("an upgrade needs its protocol")
    check_fields(head)
    encoder.begin(out)
    if upgrade:
        encoder.field(out, b":method", 7, b"CONNECT", 7, INDEX_USUAL)
        encoder.field(out, b":protocol", 9, head.data + protocol.value_off, protocol.value_len, INDEX_USUAL)
    else:
        encoder.field(out, b":method", 7, head.data + head.method_off, head.method_len, INDEX_USUAL)
    if not head.flags & HEAD_CONNECT:
        encoder.field(out, b":scheme", 7, b"https" if secure else b"http", 5 if secure else 4, INDEX_USUAL)
        encoder.field(out, b":path", 5, head.data + head.target_off, head.target_len, INDEX_USUAL)
    encoder.field(out, b":authority", 10, head.data + head.authority_off, head.authority_len, INDEX_USUAL)
    write_fields(encoder, out, head, length)
    if head.flags & HEAD_TE_TRAILERS:
        encoder.field(out, b"te", 2, b"trailers", 8, INDEX_USUAL)
    return 0


cdef int write_response(HpackEncoder encoder, ByteBuffer out, MessageHead head, int64_t length) except -1:
    cdef char[3] status
    if not 100 <= head.status <= 999 or head.status == 101:
        raise LocalProtocolError("a status that HTTP/2 does not have")
    check_fields(head)
    status[0] = <char>(48 + head.status // 100)
    status[1] = <char>(48 + head.status // 10 % 10)
    status[2] = <char>(48 + head.status % 10)
    encoder.begin(out)
    encoder.field(out, b":status", 7, status, 3, INDEX_USUAL)
    return write_fields(encoder, out, head, length)


cdef int write_trailers(HpackEncoder encoder, ByteBuffer out, MessageHead head) except -1:
    check_fields(head)
    encoder.begin(out)
    return write_fields(encoder, out, head, -1)
