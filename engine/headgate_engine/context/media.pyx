"""Media types of messages; see media.pxd."""

from headgate_engine.context.headers cimport H_CONTENT_TYPE, MessageHead


cdef bint media_type_is(MessageHead head, const char* name, Py_ssize_t n) noexcept:
    cdef int i = head.find_id(H_CONTENT_TYPE, 0)
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t length
    cdef const char* value
    cdef char c
    if i < 0:
        return False
    value = head.data + head.spans[i].value_off
    length = head.spans[i].value_len
    while at < length and (value[at] == 32 or value[at] == 9):
        at += 1
    value, length = value + at, length - at
    if length < n:
        return False
    for at in range(n):
        c = value[at]
        if 65 <= c <= 90:
            c += 32
        if c != name[at]:
            return False
    for at in range(n, length):
        if value[at] == 59:
            return True
        if value[at] != 32 and value[at] != 9:
            return False
    return True
