# cython: boundscheck=False
"""Parses request lines, status lines and header sections (RFC 9112 sections 2 to 5) into spans.

boundscheck is off: every index is derived from memchr() results within [p, p + n).
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memchr, memcmp, memcpy

from headgate_engine.context.authority cimport has_port, is_authority
from headgate_engine.context.headers cimport (
    H_CONNECTION, H_CONTENT_LENGTH, H_EXPECT, H_HOST, H_OTHER, H_PROXY_AUTHENTICATE,
    H_TE, H_TRANSFER_ENCODING, H_UPGRADE, HEAD_ABSOLUTE_FORM, HEAD_CHUNKED,
    HEAD_CONNECT, HEAD_EXPECT_CONTINUE, HEAD_HAS_HOST, HEAD_IS_HEAD, HEAD_KEEP_ALIVE, HEAD_TE_TRAILERS,
    HEAD_UPGRADE, HeaderSpan, MessageHead, SPAN_DROPPED, header_id_of, sensitivity)
from headgate_engine.wire.block cimport is_value, line_of
from headgate_engine.wire.scan cimport IS_TARGET, IS_TOKEN, all_of, is_name, lower, same_lower

from headgate_engine.context.field_names import FORBIDDEN_TRAILERS, HOP_BY_HOP, encoded
from headgate_engine.errors import RemoteProtocolError

# Fields that `connection` cannot make hop-by-hop: dropping them would change the message's meaning or recipient.
PROTECTED = (
    b"host", b"content-length", b"authorization", b"cookie", b"set-cookie", b"content-type", b"content-encoding")
FORBIDDEN = encoded(FORBIDDEN_TRAILERS)
cdef enum:
    MAX_LENGTH_DIGITS = 18
    # Each option is compared with all fields: without a bound, one head could cost milliseconds. Real heads have a few.
    MAX_CONNECTION_OPTIONS = 100
    # Bytes behind a section that line_of() may read.
    READ_AHEAD = 16


cdef int mark_ids(uint8_t* table, names) except -1:
    """Set the entries of these fields in a table by HeaderId. Each must have one."""
    for name in names:
        known = header_id_of(<bytes>name, len(<bytes>name))
        if known == H_OTHER:
            raise AssertionError(f"{name!r} has no HeaderId")
        table[known] = 1
    return 0


cdef uint8_t[256] IS_PROTECTED, IS_HOP_BY_HOP     # by HeaderId

cdef HeaderSpan UNWRITTEN = HeaderSpan(0, 0, 0, 0, 0, 0)

mark_ids(IS_PROTECTED, PROTECTED)
mark_ids(IS_HOP_BY_HOP, encoded(HOP_BY_HOP))


cdef int refuse(str reason, int status=400) except -1:
    raise RemoteProtocolError(reason, status)


cdef int parse_request(MessageHead head, const char* p, Py_ssize_t n, int max_headers) except -1:
    cdef Py_ssize_t line = load(head, p, n)
    parse_request_line(head, line)
    parse_fields(head, line + 2, n, max_headers)
    return finish_request(head)


cdef int parse_response(MessageHead head, const char* p, Py_ssize_t n, int max_headers) except -1:
    cdef Py_ssize_t line = load(head, p, n)
    parse_status_line(head, line)
    parse_fields(head, line + 2, n, max_headers)
    return finish_response(head)


cdef int parse_trailers(MessageHead head, const char* p, Py_ssize_t n, int max_headers) except -1:
    cdef int i
    cdef HeaderSpan* span
    load(head, p, n)
    parse_fields(head, 0, n, max_headers)
    for i in range(head.count):
        span = &head.spans[i]
        if head.data[span.name_off:span.name_off + span.name_len].lower() in FORBIDDEN:
            span.flags |= SPAN_DROPPED
    return 0


cdef Py_ssize_t load(MessageHead head, const char* p, Py_ssize_t n) except -1:
    """Copy the section and return the length of its first line."""
    cdef const char* end = <const char*>memchr(p, 13, n)
    head.reserve(<uint32_t>n + READ_AHEAD)
    memcpy(head.data, p, n)
    head.length = head.parsed = <uint32_t>n
    # The caller has checked that the section ends with an empty line, so there is a byte behind the CR.
    if end == NULL or end[1] != 10:
        refuse("line does not end in CR LF")
    return end - p


# -- start lines -------------------------------------------------------------------------------------------------------
cdef int parse_request_line(MessageHead head, Py_ssize_t n) except -1:
    cdef const char* p = head.data
    cdef const char* space = <const char*>memchr(p, 32, n)
    cdef const char* second
    cdef Py_ssize_t version
    if space == NULL or space == p or not all_of(p, space - p, IS_TOKEN):
        refuse("malformed request line")
    head.method_off = 0
    head.method_len = <uint32_t>(space - p)
    second = <const char*>memchr(space + 1, 32, n - (space + 1 - p))
    if second == NULL or second == space + 1:
        refuse("malformed request line")
    head.target_off = <uint32_t>(space + 1 - p)
    head.target_len = <uint32_t>(second - space - 1)
    if not all_of(space + 1, head.target_len, IS_TARGET):
        refuse("invalid character in the request target")
    version = second + 1 - p
    parse_version(head, p + version, n - version)
    if head.method_len == 4 and memcmp(p, b"HEAD", 4) == 0:
        head.flags |= HEAD_IS_HEAD
    return parse_target(head)


cdef int parse_version(MessageHead head, const char* p, Py_ssize_t n) except -1:
    if n == 8 and memcmp(p, b"HTTP/1.", 7) == 0 and (p[7] == b"1" or p[7] == b"0"):
        head.minor_version = p[7] - 48
        return 0
    if n == 8 and memcmp(p, b"HTTP/", 5) == 0 and 48 <= p[5] <= 57 and p[6] == b"." and 48 <= p[7] <= 57:
        refuse("HTTP version not supported", 505)
    refuse("malformed HTTP version")


cdef int want_authority(const char* p, Py_ssize_t n) except -1:
    return 0 if is_authority(p, n) else refuse("invalid host")


cdef int parse_target(MessageHead head) except -1:
    """Parse the target: origin, absolute, authority (CONNECT) or asterisk (OPTIONS) form, RFC 9112 section 3.2."""
    cdef const char* target = head.data + head.target_off
    cdef uint32_t n = head.target_len
    cdef uint32_t skip
    cdef const char* query
    if head.method_len == 7 and memcmp(head.data, b"CONNECT", 7) == 0:
        head.flags |= HEAD_CONNECT
        want_authority(target, n)
        if not has_port(target, n):
            refuse("CONNECT needs a port")
        head.authority_off = head.target_off
        head.authority_len = head.target_len
        head.path_len = n
        return 0
    if target[0] != b"/":
        if n == 1 and target[0] == b"*" and head.method_len == 7 and memcmp(head.data, b"OPTIONS", 7) == 0:
            head.path_len = 1
            return 0
        if n > 7 and same_lower(target, b"http://", 7):
            skip = 7
        elif n > 8 and same_lower(target, b"https://", 8):
            skip = 8
        else:
            refuse("invalid request target")
        split_absolute(head, skip)
        target = head.data + head.target_off
        n = head.target_len
    query = <const char*>memchr(target, 63, n)
    head.path_len = n if query == NULL else <uint32_t>(query - target)
    return 0


cdef int split_absolute(MessageHead head, uint32_t skip) except -1:
    cdef uint32_t start = head.target_off + skip
    cdef uint32_t stop = head.target_off + head.target_len
    cdef uint32_t at = start
    while at < stop and head.data[at] != b"/" and head.data[at] != b"?":
        at += 1
    want_authority(head.data + start, at - start)
    head.flags |= HEAD_ABSOLUTE_FORM
    head.authority_off = start
    head.authority_len = at - start
    if at == stop:
        # RFC 9112 section 3.2.4: without a path, OPTIONS applies to the server as a whole.
        if head.method_len == 7 and memcmp(head.data, b"OPTIONS", 7) == 0:
            head.set_target(b"*", 1)
        else:
            head.set_target(b"/", 1)
    elif head.data[at] == b"?":
        # An empty path becomes "/" (RFC 9112 section 3.2.1), in new bytes.
        rest = b"/" + head.data[at:stop]
        head.set_target(rest, len(rest))
    else:
        head.target_off = at
        head.target_len = stop - at
    return 0


cdef int parse_status_line(MessageHead head, Py_ssize_t n) except -1:
    cdef const char* p = head.data
    if n < 12 or p[8] != b" ":
        refuse("malformed status line", 502)
    parse_version(head, p, 8)
    for i in range(9, 12):
        if not 48 <= p[i] <= 57:
            refuse("malformed status code", 502)
    head.status = (p[9] - 48) * 100 + (p[10] - 48) * 10 + p[11] - 48
    if head.status < 100:
        refuse("malformed status code", 502)
    if n > 12:
        if p[12] != b" ":
            refuse("malformed status line", 502)
        if not is_value(p + 13, n - 13):
            refuse("control character in the reason phrase", 502)
        head.reason_off = 13
        head.reason_len = <uint32_t>(n - 13)
    return 0


# -- fields ------------------------------------------------------------------------------------------------------------
cdef int parse_fields(MessageHead head, Py_ssize_t at, Py_ssize_t n, int max_headers) except -1:
    # n: length of the section; the head may be longer by now (a rewritten target).
    cdef const char* p = head.data
    cdef Py_ssize_t start, stop, line_end
    cdef size_t name_len
    cdef HeaderSpan* span
    cdef int known
    while at < n:
        stop = at + <Py_ssize_t>line_of(p + at, n - at, &name_len)
        if stop + 1 >= n or p[stop] != 13 or p[stop + 1] != 10:
            refuse_line(p + at, n - at)
        if stop == at:
            if stop + 2 != n:
                refuse("bytes behind the header section")
            return 0
        if name_len >= <size_t>(stop - at):
            refuse("field without a colon")
        # Known names are tokens. The fast search for them needs a line without control characters.
        known = header_id_of(p + at, name_len)
        if name_len == 0 or name_len > 65535 or known == H_OTHER and not all_of(p + at, name_len, IS_TOKEN):
            refuse("invalid field name")
        line_end = stop + 2
        start = at + <Py_ssize_t>name_len + 1
        while start < stop and (p[start] == 32 or p[start] == 9):
            start += 1
        while stop > start and (p[stop - 1] == 32 or p[stop - 1] == 9):
            stop -= 1
        if head.count >= max_headers:
            refuse("too many header fields", 431)
        if head.count == head.span_capacity:
            # Makes room for one more, which is written below: a span of 16 bytes is dear to hand over.
            head.push_span(UNWRITTEN)
            head.count -= 1
        span = &head.spans[head.count]
        span.name_off = <uint32_t>at
        span.name_len = <unsigned short>name_len
        span.value_off = <uint32_t>start
        span.value_len = <uint32_t>(stop - start)
        span.id = <uint8_t>known
        span.flags = sensitivity(span.id, p + at, name_len)
        head.count += 1
        at = line_end
    refuse("header section without an end")


cdef int refuse_line(const char* p, Py_ssize_t n) except -1:
    """Say what is wrong with the line at the start: its end, its name, or a character in it."""
    cdef const char* end = <const char*>memchr(p, 10, n)
    cdef const char* colon
    if end == NULL or end == p or (end - 1)[0] != 13:
        refuse("line does not end in CR LF")
    colon = <const char*>memchr(p, 58, end - p - 1)
    if colon == NULL:
        refuse("field without a colon")
    if colon == p or colon - p > 65535 or not all_of(p, colon - p, IS_TOKEN):
        refuse("invalid field name")
    refuse("control character in a field value")


cdef int finish_request(MessageHead head) except -1:
    cdef int i
    cdef int hosts = 0
    cdef HeaderSpan* span
    framing(head)
    for i in range(head.count):
        span = &head.spans[i]
        if span.id == H_OTHER:
            continue
        if span.id == H_HOST:
            hosts += 1
            if hosts > 1:
                refuse("more than one host field")
            want_authority(head.data + span.value_off, span.value_len)
            head.flags |= HEAD_HAS_HOST
            span.flags |= SPAN_DROPPED
            # The authority of an absolute target or of CONNECT overrides the field (RFC 9112 section 3.2.2).
            if head.authority_len == 0:
                head.authority_off = span.value_off
                head.authority_len = span.value_len
        elif span.id == H_EXPECT:
            if span.value_len != 12 or not same_lower(head.data + span.value_off, b"100-continue", 12):
                refuse("unknown expectation", 417)
            span.flags |= SPAN_DROPPED
            if head.minor_version == 1:
                head.flags |= HEAD_EXPECT_CONTINUE
        elif span.id == H_PROXY_AUTHENTICATE:
            span.flags |= SPAN_DROPPED
    if hosts == 0 and head.minor_version == 1:
        refuse("no host field")
    return connection_fields(head)


cdef int finish_response(MessageHead head) except -1:
    framing(head)
    return connection_fields(head)


cdef int framing(MessageHead head) except -1:
    """Read content-length or transfer-encoding: exactly one, once, in its simplest form (RFC 9112 section 6)."""
    cdef int i, j
    cdef HeaderSpan* span
    cdef const char* value
    cdef int64_t length
    cdef bint lengths = False, codings = False
    for i in range(head.count):
        span = &head.spans[i]
        value = head.data + span.value_off
        if span.id == H_CONTENT_LENGTH:
            if lengths:
                refuse("more than one content-length")
            lengths = True
            if span.value_len == 0 or span.value_len > MAX_LENGTH_DIGITS:
                refuse("invalid content-length")
            length = 0
            for j in range(<int>span.value_len):
                if not 48 <= value[j] <= 57:
                    refuse("invalid content-length")
                length = length * 10 + (value[j] - 48)
            head.content_length = length
            span.flags |= SPAN_DROPPED
        elif span.id == H_TRANSFER_ENCODING:
            if codings:
                refuse("more than one transfer-encoding")
            codings = True
            if head.minor_version == 0:
                refuse("transfer-encoding in HTTP/1.0")
            if span.value_len != 7 or not same_lower(value, b"chunked", 7):
                last = head.data[span.value_off:span.value_off + span.value_len].lower()
                known = last.endswith(b"chunked") and last.count(b"chunked") == 1 and b"," in last
                refuse("transfer coding not supported", 501 if known else 400)
            head.flags |= HEAD_CHUNKED
            span.flags |= SPAN_DROPPED
    if lengths and codings:
        refuse("both content-length and transfer-encoding")
    return 0


cdef int connection_fields(MessageHead head) except -1:
    """Read persistence and mark hop-by-hop fields, RFC 9110 section 7.6.1."""
    cdef int i
    cdef int options = 0, asked = 0
    cdef HeaderSpan* span
    cdef bint upgrade_field = False, no_tunnel = False
    for i in range(head.count):
        span = &head.spans[i]
        if not IS_HOP_BY_HOP[span.id] or span.id == H_TRANSFER_ENCODING:
            continue          # framing() reads the body's coding
        span.flags |= SPAN_DROPPED
        if span.id == H_CONNECTION:
            asked |= connection_options(head, span, &options)
        elif span.id == H_UPGRADE:
            # HTTP/2 in a tunnel would bypass listeners, routes and policies, so a request for h2c is ignored
            # (RFC 9110 section 7.8 allows that).
            no_tunnel |= has_word(head.data + span.value_off, span.value_len, b"h2c", 3)
            upgrade_field = True
        elif span.id == H_TE and has_word(head.data + span.value_off, span.value_len, b"trailers", 8):
            head.flags |= HEAD_TE_TRAILERS
    if not asked & ASKED_CLOSE and (head.minor_version == 1 or asked & ASKED_KEEP):
        head.flags |= HEAD_KEEP_ALIVE
    if asked & ASKED_UPGRADE and upgrade_field and not no_tunnel and head.minor_version == 1:
        head.flags |= HEAD_UPGRADE
    return 0


# Options of a connection field.
cdef enum:
    ASKED_CLOSE = 1
    ASKED_KEEP = 2
    ASKED_UPGRADE = 4


cdef int connection_options(MessageHead head, const HeaderSpan* span, int* options) except -1:
    """Drop the fields that one connection field names. Return ASKED bits. options: count for the whole head."""
    cdef const char* p = head.data + span.value_off
    cdef Py_ssize_t stop = span.value_len
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t n, start
    cdef int asked = 0
    if stop == 10 and memcmp(p, b"keep-alive", 10) == 0:       # what most peers send, if anything
        options[0] += 1
        return ASKED_KEEP
    while at <= stop:
        n = next_element(p, stop, &at, &start)
        if n == 0:
            continue
        options[0] += 1
        if options[0] > MAX_CONNECTION_OPTIONS:
            refuse("too many connection options")
        if n == 5 and is_name(p + start, b"close", 5):
            asked |= ASKED_CLOSE
        elif n == 10 and is_name(p + start, b"keep-alive", 10):
            asked |= ASKED_KEEP
        elif n == 7 and is_name(p + start, b"upgrade", 7):
            asked |= ASKED_UPGRADE
        elif not IS_PROTECTED[header_id_of(p + start, n)]:
            drop_named(head, p + start, n)
    return asked


cdef int drop_named(MessageHead head, const char* name, Py_ssize_t n) noexcept nogil:
    """Drop the fields with that name, like MessageHead.drop_field(), for a name in any case."""
    cdef int i
    cdef Py_ssize_t j
    cdef HeaderSpan* span
    cdef const char* other
    for i in range(head.count):
        span = &head.spans[i]
        if span.name_len != n or span.flags & SPAN_DROPPED:
            continue
        other = head.data + span.name_off
        j = 0
        while j < n and lower(other[j]) == lower(name[j]):
            j += 1
        if j == n:
            span.flags |= SPAN_DROPPED
    return 0


cdef bint has_word(const char* p, Py_ssize_t stop, const char* lowered, Py_ssize_t length) noexcept nogil:
    """Return whether one member of a comma-separated list is this word, in any case."""
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t n, start
    while at <= stop:
        n = next_element(p, stop, &at, &start)
        if n == length and same_lower(p + start, lowered, length):
            return True
    return False


cdef inline Py_ssize_t next_element(const char* p, Py_ssize_t stop, Py_ssize_t* at, Py_ssize_t* start) noexcept nogil:
    """Return the length of the list member that begins at `at`, without blanks. Move `at` behind its comma."""
    cdef const char* comma = <const char*>memchr(p + at[0], 44, stop - at[0])
    cdef Py_ssize_t end = stop if comma == NULL else comma - p
    start[0] = at[0]
    at[0] = end + 1
    while start[0] < end and (p[start[0]] == 32 or p[start[0]] == 9):
        start[0] += 1
    while end > start[0] and (p[end - 1] == 32 or p[end - 1] == 9):
        end -= 1
    return end - start[0]
