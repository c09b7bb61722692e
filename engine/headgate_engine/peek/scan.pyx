# cython: boundscheck=False
"""One pass over a JSON text: strict like the standard parser, linear, without recursion.

boundscheck is off: every index into the text is compared with its length first, and every index into the stack with its
depth.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset

from headgate_engine.wire.scan cimport hex_value

cdef extern from *:
    """
    #if defined(__SSE2__)
    #include <emmintrin.h>
    /* Sixteen bytes at a time: as signed numbers, what lies above 0x7f lies below 0x20, too. */
    static inline Py_ssize_t hg_plain_run(const unsigned char *p, Py_ssize_t n) {
        const __m128i quote = _mm_set1_epi8(0x22), slash = _mm_set1_epi8(0x5c), space = _mm_set1_epi8(0x20);
        Py_ssize_t at = 0;
        for (; n - at >= 16; at += 16) {
            const __m128i sixteen = _mm_loadu_si128((const __m128i *)(p + at));
            const int marks = _mm_movemask_epi8(_mm_or_si128(_mm_cmplt_epi8(sixteen, space),
                _mm_or_si128(_mm_cmpeq_epi8(sixteen, quote), _mm_cmpeq_epi8(sixteen, slash))));
            if (marks)
                return at + __builtin_ctz(marks);
        }
        return at;
    }
    #else
    #define hg_plain_run(p, n) 0
    #endif
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    /* Which byte of an 8-byte load carries the lowest mark: borrows only run upwards, so that one is no echo. */
    #define HG_FIRST_MARK(mask) (__builtin_ctzll(mask) >> 3)
    #else
    #define HG_FIRST_MARK(mask) 0
    #endif
    """
    int HG_FIRST_MARK(uint64_t mask) noexcept nogil
    # Number of plain characters (see string_end) at the start of the n bytes at p, in whole steps of 16 bytes.
    Py_ssize_t hg_plain_run(const uint8_t* p, Py_ssize_t n) noexcept nogil

FAULTS = {
    F_EARLY_END: "text ends too early",
    F_VALUE: "expected a value",
    F_NAME: "expected a member name",
    F_COLON: "expected a colon",
    F_COMMA: "expected a comma or an end",
    F_STRING: "bad string",
    F_NUMBER: "bad number",
    F_UTF8: "invalid UTF-8",
    F_BEHIND: "text behind the value",
    F_DEPTH: "nested too deeply",
}

cdef enum:
    # Marks on the stack of open containers: the watched field or UNWATCHED, and a bit for objects.
    UNWATCHED = 0x7F
    IS_OBJECT = 0x80


cdef inline bint is_digit(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    return at < n and 48 <= p[at] <= 57


cdef inline int wide_length(const uint8_t* p, Py_ssize_t left) noexcept nogil:
    """Return the length of the UTF-8 sequence at p, which begins with 0x80 or above.

    0 if it is invalid (RFC 3629 section 4).
    """
    cdef uint8_t c = p[0]
    if c < 0xC2:
        return 0
    if left < 2 or p[1] & 0xC0 != 0x80:
        return 0
    if c < 0xE0:
        return 2
    if left < 3 or p[2] & 0xC0 != 0x80:
        return 0
    if c < 0xF0:
        # Overlong forms and surrogates are invalid.
        return 0 if (c == 0xE0 and p[1] < 0xA0) or (c == 0xED and p[1] > 0x9F) else 3
    if left < 4 or p[3] & 0xC0 != 0x80 or c > 0xF4:
        return 0
    return 0 if (c == 0xF0 and p[1] < 0x90) or (c == 0xF4 and p[1] > 0x8F) else 4


cdef inline int escape_length(const uint8_t* p, Py_ssize_t left) noexcept nogil:
    """Return the length of the escape behind a backslash at p[-1], 0 if it is invalid."""
    cdef int i
    if left < 1:
        return 0
    if p[0] == 117:
        for i in range(1, 5):
            if left <= i or hex_value(<char>p[i]) < 0:
                return 0
        return 5
    return 1 if memchr(b'"\\/bfnrt', p[0], 8) != NULL else 0


cdef Py_ssize_t string_end(Scan* s, Py_ssize_t at, bint* escaped) noexcept nogil:
    """Return the offset behind the closing quote of the string with its first character at `at`.

    -1 if it is invalid; the fault is then set.
    """
    cdef const uint8_t* p = s.text
    cdef Py_ssize_t n = s.length
    cdef uint64_t eight, quote, slash
    cdef uint8_t c
    cdef int size
    while True:
        # Plain characters, many at a time: none below 0x20, no quote, no backslash, none above 0x7f.
        at += hg_plain_run(p + at, n - at)
        while n - at >= 8:
            memcpy(&eight, p + at, 8)
            quote = eight ^ <uint64_t>0x2222222222222222
            slash = eight ^ <uint64_t>0x5C5C5C5C5C5C5C5C
            eight = ((eight - <uint64_t>0x2020202020202020) | (quote - <uint64_t>0x0101010101010101)
                     | (slash - <uint64_t>0x0101010101010101) | eight) & <uint64_t>0x8080808080808080
            if eight:
                at += HG_FIRST_MARK(eight)
                break
            at += 8
        if at >= n:
            return failed(s, F_EARLY_END, n)
        c = p[at]
        if c == 34:
            return at + 1
        if c >= 128:
            while at < n and p[at] >= 128:
                size = wide_length(p + at, n - at)
                if size == 0:
                    return failed(s, F_UTF8, at)
                at += size
        elif c == 92:
            escaped[0] = True
            size = escape_length(p + at + 1, n - at - 1)
            if size == 0:
                return failed(s, F_STRING, at)
            at += 1 + size
        elif c < 32:
            return failed(s, F_STRING, at)
        else:
            at += 1


cdef Py_ssize_t number_end(Scan* s, Py_ssize_t at) noexcept nogil:
    """Return the offset behind the number that begins at `at`, or -1 and set the fault."""
    cdef const uint8_t* p = s.text
    cdef Py_ssize_t n = s.length
    if p[at] == 45:
        at += 1
    if not is_digit(p, at, n):
        return failed(s, F_NUMBER, at)
    if p[at] == 48:
        at += 1
    else:
        while is_digit(p, at, n):
            at += 1
    if at < n and p[at] == 46:
        at += 1
        if not is_digit(p, at, n):
            return failed(s, F_NUMBER, at)
        while is_digit(p, at, n):
            at += 1
    if at < n and (p[at] == 101 or p[at] == 69):
        at += 1
        if at < n and (p[at] == 43 or p[at] == 45):
            at += 1
        if not is_digit(p, at, n):
            return failed(s, F_NUMBER, at)
        while is_digit(p, at, n):
            at += 1
    return at


cdef inline Py_ssize_t failed(Scan* s, int fault, Py_ssize_t at) noexcept nogil:
    s.fault = fault
    s.fault_at = at
    return -1


cdef bint same_decoded(const uint8_t* p, Py_ssize_t n, const char* name, Py_ssize_t m) noexcept nogil:
    """Return whether a checked raw string with escapes equals an ASCII name."""
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t k = 0
    cdef int c, i
    while at < n:
        if k == m:
            return False
        c = p[at]
        at += 1
        if c == 92:
            c = p[at]
            at += 1
            if c == 117:
                c = 0
                for i in range(4):
                    c = c << 4 | hex_value(<char>p[at + i])
                at += 4
            elif c >= 98:
                # b f n r t: control characters, which watched names do not contain.
                return False
        if c != <uint8_t>name[k]:
            return False
        k += 1
    return k == m


cdef int watched(Scan* s, int parent, Py_ssize_t start, Py_ssize_t stop, bint escaped) noexcept nogil:
    """Return the watched member of `parent` with this raw name, or UNWATCHED."""
    cdef const uint8_t* key = s.text + start
    cdef Py_ssize_t n = stop - start
    cdef const Field* field
    cdef int i = s.fields[parent].first
    while i:
        field = &s.fields[i]
        if escaped:
            if same_decoded(key, n, field.name, field.name_len):
                return i
        elif field.name_len == n and field.name != NULL and memcmp(key, field.name, n) == 0:
            return i
        i = field.next
    return UNWATCHED


cdef inline int items_of(Scan* s, int array) noexcept nogil:
    """Return the watched field that stands for the items of an array, or UNWATCHED.

    Such a field is the only watched one below its array, and has no name (NULL, name_len 0). A second item counts as a
    duplicate.
    """
    cdef int i
    if array == UNWATCHED:
        return UNWATCHED
    i = s.fields[array].first
    return i if i and s.fields[i].name == NULL else <int>UNWATCHED


cdef Py_ssize_t member_value(Scan* s, Py_ssize_t at, int parent, int* field) noexcept nogil:
    """Read a member's name and colon. Return the offset of its value, or -1 and set the fault."""
    cdef Py_ssize_t end
    cdef bint escaped = False
    if at >= s.length:
        return failed(s, F_EARLY_END, at)
    if s.text[at] != 34:
        return failed(s, F_NAME, at)
    end = string_end(s, at + 1, &escaped)
    if end < 0:
        return end
    field[0] = UNWATCHED if parent == UNWATCHED else watched(s, parent, at + 1, end - 1, escaped)
    at = skip_blanks(s.text, end, s.length)
    if at >= s.length:
        return failed(s, F_EARLY_END, at)
    if s.text[at] != 58:
        return failed(s, F_COLON, at)
    return at + 1


cdef void begin(Scan* s, int field, Py_ssize_t at, int kind) noexcept nogil:
    """Record the start of a watched value. A second member of that name replaces all members of the first."""
    cdef Found* found = &s.found[field]
    cdef int i, above
    if found.seen:
        s.duplicate = True
        for i in range(field + 1, s.count):
            above = s.fields[i].parent
            while above > field:
                above = s.fields[above].parent
            if above == field:
                memset(&s.found[i], 0, sizeof(Found))
    found.seen += 1
    found.kind = kind
    found.start = at


cdef Py_ssize_t scalar_end(Scan* s, Py_ssize_t at, int* kind) noexcept nogil:
    """Return the offset behind a value that is not a container, or -1 and set the fault."""
    cdef const uint8_t* p = s.text + at
    cdef Py_ssize_t left = s.length - at
    cdef bint escaped = False
    if p[0] == 34:
        kind[0] = J_STRING
        return string_end(s, at + 1, &escaped)
    if p[0] == 45 or 48 <= p[0] <= 57:
        kind[0] = J_NUMBER
        return number_end(s, at)
    if left >= 4 and memcmp(p, b"true", 4) == 0:
        kind[0] = J_TRUE
        return at + 4
    if left >= 5 and memcmp(p, b"false", 5) == 0:
        kind[0] = J_FALSE
        return at + 5
    if left >= 4 and memcmp(p, b"null", 4) == 0:
        kind[0] = J_NULL
        return at + 4
    return failed(s, F_VALUE, at)


cdef int scan_text(Scan* s) noexcept nogil:
    """Scan the text. Return 0, or -1 and set the fault."""
    cdef uint8_t stack[DEPTH_LIMIT]
    cdef const uint8_t* p = s.text
    cdef Py_ssize_t n = s.length
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t end
    cdef int depth = 0
    cdef int field = 0             # of the next value; the whole text is field 0
    cdef int kind = J_NONE
    while True:
        at = skip_blanks(p, at, n)
        if at >= n:
            return failed(s, F_EARLY_END, n)
        if p[at] == 123 or p[at] == 91:
            if depth >= s.max_depth:
                return failed(s, F_DEPTH, at)
            kind = J_OBJECT if p[at] == 123 else J_ARRAY
            if field != UNWATCHED:
                begin(s, field, at, kind)
            stack[depth] = <uint8_t>(field | (IS_OBJECT if kind == J_OBJECT else 0))
            depth += 1
            at = skip_blanks(p, at + 1, n)
            # In ASCII, closing brackets are the opening ones plus 2.
            if at >= n or p[at] != (125 if kind == J_OBJECT else 93):
                if kind == J_OBJECT:
                    at = member_value(s, at, field, &field)
                    if at < 0:
                        return -1
                else:
                    field = items_of(s, field)
                continue
            s.empty = s.empty or depth == 1
        else:
            end = scalar_end(s, at, &kind)
            if end < 0:
                return -1
            if field != UNWATCHED:
                begin(s, field, at, kind)
                s.found[field].stop = end
            at = end
        # Here `at` is behind a value, or before the end of an empty container.
        while depth:
            at = skip_blanks(p, at, n)
            if at >= n:
                return failed(s, F_EARLY_END, n)
            field = stack[depth - 1] & UNWATCHED
            if p[at] == 44:
                at = skip_blanks(p, at + 1, n)
                if stack[depth - 1] & IS_OBJECT:
                    at = member_value(s, at, field, &field)
                    if at < 0:
                        return -1
                else:
                    field = items_of(s, field)
                break
            if p[at] != (125 if stack[depth - 1] & IS_OBJECT else 93):
                return failed(s, F_COMMA, at)
            depth -= 1
            at += 1
            if field != UNWATCHED:
                s.found[field].stop = at
        else:
            at = skip_blanks(p, at, n)
            return 0 if at == n else <int>failed(s, F_BEHIND, at)
