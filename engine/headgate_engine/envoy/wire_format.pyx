"""Reading protocol buffers; see wire_format.pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef enum:
    MOST_VARINT = 10          # bytes
    MOST_NUMBER = 536870911   # of a field
    GROUP_BEGIN = 3
    GROUP_END = 4
    MOST_DEPTH = 32           # of groups


cdef WireCursor cursor_of(const char* p, Py_ssize_t n) noexcept nogil:
    cdef WireCursor found
    found.at, found.end = p, p + n
    return found


cdef bint take_varint(WireCursor* cursor, uint64_t* value) noexcept nogil:
    cdef uint64_t found = 0
    cdef uint8_t byte
    cdef int i
    for i in range(MOST_VARINT):
        if cursor.at >= cursor.end:
            return False
        byte = <uint8_t>cursor.at[0]
        cursor.at = cursor.at + 1
        found |= <uint64_t>(byte & 127) << (7 * i)
        if byte < 128:
            value[0] = found
            return True
    return False


cdef bint skip_group(WireCursor* cursor, uint32_t number, int depth) noexcept nogil:
    cdef WireField inner
    cdef int found
    if depth > MOST_DEPTH:
        return False
    while True:
        found = take_field(cursor, &inner, depth)
        if found <= 0:
            return False
        if inner.kind == GROUP_END:
            return inner.number == number


cdef int take_field(WireCursor* cursor, WireField* field, int depth) noexcept nogil:
    cdef uint64_t tag
    if cursor.at >= cursor.end:
        return 0
    if not take_varint(cursor, &tag) or tag >> 3 == 0 or tag >> 3 > MOST_NUMBER:
        return -1
    field.number, field.kind = <uint32_t>(tag >> 3), <int>(tag & 7)
    field.value, field.data, field.size = 0, NULL, 0
    if field.kind == WIRE_VARINT:
        return 1 if take_varint(cursor, &field.value) else -1
    if field.kind == WIRE_BYTES:
        if not take_varint(cursor, &field.value) or field.value > <uint64_t>(cursor.end - cursor.at):
            return -1
        field.data, field.size = cursor.at, <Py_ssize_t>field.value
    elif field.kind == WIRE_FIXED64 or field.kind == WIRE_FIXED32:
        field.size = 8 if field.kind == WIRE_FIXED64 else 4
        if field.size > cursor.end - cursor.at:
            return -1
    elif field.kind == GROUP_BEGIN:
        return 1 if skip_group(cursor, field.number, depth + 1) else -1
    elif field.kind != GROUP_END or depth == 0:
        return -1
    cursor.at = cursor.at + field.size
    return 1


cdef int next_field(WireCursor* cursor, WireField* field) noexcept nogil:
    return take_field(cursor, field, 0)


cdef bint is_utf8(const char* p, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i = 0
    cdef uint8_t first, second
    cdef int more, k
    while i < n:
        first = <uint8_t>p[i]
        i = i + 1
        if first < 128:
            continue
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
        elif 0xF0 <= first <= 0xF4:
            more = 3
        else:
            return False
        if i + more > n:
            return False
        second = <uint8_t>p[i]
        # Overlong forms, surrogates, and what is beyond U+10FFFF.
        if first == 0xE0 and second < 0xA0 or first == 0xED and second > 0x9F or first == 0xF0 and second < 0x90 or (
                first == 0xF4 and second > 0x8F):
            return False
        for k in range(more):
            if <uint8_t>p[i + k] & 0xC0 != 0x80:
                return False
        i = i + more
    return True
