"""The parts of a form; see form_parts.pxd.

Each line that begins with two hyphens may begin a part: which boundary a provider takes is in a header. What only looks like
a part makes more of them, never fewer.
"""

from libc.stdint cimport int64_t
from libc.string cimport memchr

cdef enum:
    # Digits of a number of answers.
    DIGITS = 4


cdef inline bint begins(const char* p, Py_ssize_t n, const char* word, Py_ssize_t length) noexcept nogil:
    """Whether a text begins with a word in small letters, whatever letters it has itself."""
    cdef Py_ssize_t at
    if n < length:
        return False
    for at in range(length):
        if (p[at] | 32 if 65 <= p[at] <= 90 else p[at]) != word[at]:
            return False
    return True


cdef inline bint is_between(char one) noexcept nogil:
    return one == 32 or one == 9 or one == 59 or one == 13


cdef bint is_n(const char* p, Py_ssize_t n) noexcept nogil:
    """Whether a value is `n`, with quotes or without."""
    if n > 2 and p[0] == 34:
        return p[1] == 110 and p[2] == 34
    return n > 0 and p[0] == 110 and (n == 1 or is_between(p[1]))


cdef int64_t number(const char* p, Py_ssize_t n) noexcept nogil:
    """The number that a text begins with, of its first digits; 0: none."""
    cdef Py_ssize_t at = 0
    cdef int64_t found = 0
    cdef int digits = 0
    while at < n and (p[at] == 32 or p[at] == 9):
        at += 1
    while at < n and digits < DIGITS and 48 <= p[at] <= 57:
        found = found * 10 + p[at] - 48
        digits += 1
        at += 1
    return found


cdef int scan_form(const char* p, Py_ssize_t n, FormParts* found) noexcept nogil:
    cdef const char* end = p + n
    cdef const char* line = p
    cdef const char* stop
    cdef Py_ssize_t length, at
    cdef bint in_head = False, named_n = False, file = False, picture = False
    found.pictures = found.files = found.choices = 0
    while line < end:
        stop = <const char*>memchr(line, 10, end - line)
        if stop == NULL:
            stop = end
        length = stop - line
        if length > 1 and line[0] == 45 and line[1] == 45:
            in_head, named_n, file, picture = True, False, False, False
        elif in_head and (length == 0 or length == 1 and line[0] == 13):
            in_head = False
            found.pictures += picture
            found.files += file and not picture
            if named_n and stop < end:
                found.choices = max(found.choices, number(stop + 1, end - stop - 1))
        elif in_head:
            if begins(line, length, b"content-type:", 13):
                at = 13
                while at < length and (line[at] == 32 or line[at] == 9):
                    at += 1
                picture = begins(line + at, length - at, b"image/", 6)
            else:
                # A head may go on in further lines (RFC 5322 section 2.2.3).
                for at in range(length):
                    if at and not is_between(line[at - 1]):
                        continue
                    if begins(line + at, length - at, b"filename", 8):
                        file = True
                    elif begins(line + at, length - at, b"name=", 5) and is_n(line + at + 5, length - at - 5):
                        named_n = True
        line = stop + 1
    return 0
