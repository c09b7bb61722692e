# cython: boundscheck=False
"""Text files in base64; see encoded.pxd.

boundscheck is off: offsets are compared with the length first.
"""

from headgate_engine.guard.spans cimport escape
from headgate_engine.guard.transcript cimport WORD, Word

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int8_t, uint8_t, uint32_t
from libc.string cimport memcmp, strlen

cdef enum:
    PADDING = -2
    QUESTION_MARK = 63

# What a letter stands for: 0 to 63, PADDING, or -1 for none. Both alphabets.
cdef int8_t VALUES[256]
cdef const char** TEXT_MEDIA = [b"text/", b"application/json", b"application/x-ndjson", b"application/xml", b"application/yaml",
                                b"application/x-yaml"]


cdef void fill_values() noexcept:
    cdef const uint8_t* letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    cdef int i
    for i in range(256):
        VALUES[i] = -1
    for i in range(64):
        VALUES[letters[i]] = <int8_t>i
    VALUES[45], VALUES[95], VALUES[61] = 62, 63, PADDING


fill_values()


cdef Py_ssize_t decode(const uint8_t* p, Py_ssize_t n, uint8_t* out) noexcept nogil:
    cdef uint8_t said[4]
    cdef uint32_t bits = 0
    cdef Py_ssize_t used = 0
    cdef Py_ssize_t at = 0
    cdef int held = 0
    cdef int size = 1
    cdef int i, value, wrote
    while at < n:
        if p[at] == 92:
            wrote = escape(p + at, n - at, said, &size)
        else:
            said[0] = p[at]
            wrote = size = 1
        at += size
        for i in range(wrote):
            value = VALUES[said[i]]
            if value == PADDING:
                bits, held = 0, 0
            elif value >= 0:
                bits = bits << 6 | <uint32_t>value
                held += 6
                if held >= 8:
                    held -= 8
                    out[used] = <uint8_t>(bits >> held)
                    used += 1
    repair(out, used)
    return used


cdef int sequence(const uint8_t* p, Py_ssize_t left) noexcept nogil:
    """Return the length of the character of UTF-8 at p (RFC 3629 section 4), 0 if it is none."""
    cdef uint8_t low = 0x80
    cdef uint8_t high = 0xBF
    cdef int n, i
    if p[0] < 0x80:
        return 1
    if p[0] < 0xC2 or p[0] > 0xF4:
        return 0
    n = 2 if p[0] < 0xE0 else 3 if p[0] < 0xF0 else 4
    if p[0] == 0xE0:
        low = 0xA0
    elif p[0] == 0xED:
        high = 0x9F
    elif p[0] == 0xF0:
        low = 0x90
    elif p[0] == 0xF4:
        high = 0x8F
    if left < n or p[1] < low or p[1] > high:
        return 0
    for i in range(2, n):
        if p[i] & 0xC0 != 0x80:
            return 0
    return n


cdef void repair(uint8_t* p, Py_ssize_t n) noexcept nogil:
    """Replace each byte that is no UTF-8."""
    cdef Py_ssize_t at = 0
    cdef int size
    while at < n:
        size = sequence(p + at, n - at)
        if size == 0:
            p[at] = QUESTION_MARK
            size = 1
        at += size


cdef void lower(Word* word) noexcept nogil:
    cdef int i
    for i in range(min(word.length, <int>WORD)):
        if 65 <= word.text[i] <= 90:
            word.text[i] += 32


cdef bint is_text_media(Word* word, int start) noexcept nogil:
    cdef int held = min(word.length, <int>WORD)
    cdef int i, n
    if word.length > WORD:
        return True                            # its beginning is not there; what is no text has no words
    lower(word)
    for i in range(6):
        n = <int>strlen(TEXT_MEDIA[i])
        if held - start >= n and memcmp(word.text + start, TEXT_MEDIA[i], n) == 0:
            return True
    return False


def encoded_text(bytes body not None, Py_ssize_t start, Py_ssize_t stop):
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(body)
    cdef bytes out
    cdef uint8_t* room
    cdef Py_ssize_t used
    if not 0 <= start <= stop <= PyBytes_GET_SIZE(body):
        raise ValueError("not within the body")
    # Of a string that ends in the middle of an escape the decoder would read on.
    if PyBytes_GET_SIZE(body) < stop + 12:
        body = body + bytes(12)
        p = <const uint8_t*>PyBytes_AS_STRING(body)
    out = PyBytes_FromStringAndSize(NULL, stop - start + 4)
    room = <uint8_t*>PyBytes_AS_STRING(out)
    with nogil:
        used = decode(p + start, stop - start, room)
    return out[:used]
