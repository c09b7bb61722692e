# cython: boundscheck=False
"""The items of a list in a JSON text, as offsets.

The text has passed the scan of peek.scan, so nothing is checked again. The brackets and quotes of valid JSON keep every
index inside the text, so boundscheck is off.
"""

import json

from headgate_engine.peek.rpc cimport RpcMessage, quoted
from headgate_engine.peek.scan cimport skip_blanks

from libc.stdint cimport uint8_t
from libc.string cimport memchr, memcmp

cdef bytes META = b"_meta"


cdef inline Py_ssize_t string_end(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Return the offset behind the string whose opening quote is at `at`."""
    cdef const uint8_t* quote
    cdef Py_ssize_t back
    at += 1
    while True:
        quote = <const uint8_t*>memchr(p + at, 34, n - at)
        if quote == NULL:
            return n
        back = quote - p
        while p[back - 1] == 92:
            back -= 1
        at = quote - p + 1
        # After an even number of backslashes the quote is not escaped. No backslash can precede the opening quote.
        if (at - 1 - back) % 2 == 0:
            return at


cdef Py_ssize_t value_end(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Return the offset behind the value at `at`."""
    cdef int depth = 0
    cdef uint8_t c = p[at]
    if c == 34:
        return string_end(p, at, n)
    if c != 123 and c != 91:
        while at < n and p[at] != 44 and p[at] != 125 and p[at] != 93 and p[at] > 32:
            at += 1
        return at
    while at < n:
        c = p[at]
        if c == 34:
            at = string_end(p, at, n)
            continue
        at += 1
        if c == 123 or c == 91:
            depth += 1
        elif c == 125 or c == 93:
            depth -= 1
            if depth == 0:
                break
    return at


cdef bint is_key(const uint8_t* p, Py_ssize_t start, Py_ssize_t stop, bytes key) except -1:
    """Return whether the raw string start..stop, quotes included, decodes to `key`."""
    if memchr(p + start, 92, stop - start) != NULL:
        return json.loads(p[start:stop]) == key.decode()
    return stop - start - 2 == len(key) and memcmp(p + start + 1, <const char*>key, len(key)) == 0


cdef class Item:
    def __init__(self):
        raise TypeError("an item comes of a list")

    def renamed(self, str name not None):
        if self.stop == 0:
            raise ValueError("the item has no name")
        return self.raw[:self.start] + quoted(name) + self.raw[self.stop:]

    def decoded(self):
        return json.loads(self.raw)


cdef Py_ssize_t read_item(Item item, const uint8_t* p, Py_ssize_t start, Py_ssize_t n, bytes key) except -1:
    """Read the item at `start` and return the offset behind it."""
    cdef Py_ssize_t at, end, value
    if p[start] != 123:
        at = value_end(p, start, n)
        item.raw = p[start:at]
        return at
    at = skip_blanks(p, start + 1, n)
    while p[at] != 125:
        end = string_end(p, at, n)
        value = skip_blanks(p, end, n)                    # the colon
        value = skip_blanks(p, value + 1, n)
        if is_key(p, at, end, key):
            item.odd = item.stop > 0
            item.start = value - start
            item.stop = value_end(p, value, n) - start
        elif is_key(p, at, end, META):
            item.has_meta = True
        at = skip_blanks(p, value_end(p, value, n), n)
        if p[at] == 44:
            at = skip_blanks(p, at + 1, n)
    item.raw = p[start:at + 1]
    if item.stop and p[start + item.start] == 34:
        if memchr(p + start + item.start, 92, item.stop - item.start) == NULL:
            item.name = item.raw[item.start + 1:item.stop - 1].decode()
        else:
            item.name = json.loads(item.raw[item.start:item.stop])
    return at + 1


cdef Py_ssize_t read_items(list found, const uint8_t* p, Py_ssize_t at, Py_ssize_t n, bytes key) except -1:
    """Append the items of the array at `at` to `found` and return the offset behind the array."""
    cdef Item item
    at = skip_blanks(p, at + 1, n)
    while p[at] != 93:
        item = Item.__new__(Item)
        at = skip_blanks(p, read_item(item, p, at, n, key), n)
        found.append(item)
        if p[at] == 44:
            at = skip_blanks(p, at + 1, n)
    return at + 1


def list_of(RpcMessage message not None, bytes member not None, bytes key not None):
    """Return the span of the array `result.<member>` in the text of a response, and its items.

    key: the member of an item that is its name. If there is no such array, the result is ((0, 0), []). If there are
    two, the last one counts.
    """
    cdef const uint8_t* p = message.text
    cdef Py_ssize_t n = len(message.text)
    cdef Py_ssize_t at, start, end
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t last = 0
    cdef list found = []
    if not message.has_result_object:
        return (0, 0), found
    at = skip_blanks(p, message.result_span[0] + 1, n)
    while p[at] != 125:
        start, end = at, string_end(p, at, n)
        at = skip_blanks(p, end, n)                       # the colon
        at = skip_blanks(p, at + 1, n)
        if is_key(p, start, end, member):
            found = []
            first = last = 0
            if p[at] == 91:
                first = at
                at = last = read_items(found, p, at, n, key)
            else:
                at = value_end(p, at, n)
        else:
            at = value_end(p, at, n)
        at = skip_blanks(p, at, n)
        if p[at] == 44:
            at = skip_blanks(p, at + 1, n)
    return (first, last), found
