# cython: boundscheck=False
"""Long JSON in slices; see sliced.pxd. boundscheck is off: the scan stays between two offsets of one text.

The scan only looks for the commas between members: whether what lies between them is JSON is judged by the decoder, run by
run. What is cut is decoded as an array or object of its own.
"""

from libc.string cimport memchr

from headgate_engine.llm.translate.readers cimport loads
from headgate_engine.llm.translate.writers cimport dumps

from headgate_engine.llm.translate.readers import Garbage

# About 0.4 ms of decoding where there are only short numbers; 0.1 ms of usual text.
SLICE = 65536
# Arrays and objects within one another that are cut: of what lies deeper all is decoded at once.
MAX_DEPTH = 6

cdef enum:
    # Of what lies this deep in an item, only that it is there is counted.
    WEIGHED_DEPTH = 12
    # Bytes of a number, a name or a constant, roughly.
    SCALAR = 8

cdef struct Place:
    Py_ssize_t at              # where the scan goes on
    Py_ssize_t run             # where the run begins
    Py_ssize_t member          # where its last member begins


cdef Py_ssize_t string_stop(const char* text, Py_ssize_t at, Py_ssize_t stop) noexcept nogil:
    """The quote that ends the string whose contents begin at `at`; -1 without one."""
    cdef Py_ssize_t start = at
    cdef Py_ssize_t before
    cdef const char* found
    while at < stop:
        found = <const char*>memchr(text + at, 34, stop - at)
        if found == NULL:
            return -1
        at = found - text
        before = at
        while before > start and text[before - 1] == 92:
            before -= 1
        if (at - before) & 1 == 0:
            return at
        start = at = at + 1
    return -1


cdef bint next_cut(const char* text, Place* place, Py_ssize_t stop, Py_ssize_t size, Py_ssize_t* cut) noexcept nogil:
    """Finds the comma in front of which the run ends, or the closing bracket; False at the end of the text."""
    cdef Py_ssize_t at = place.at
    cdef int depth = 0
    cdef char c
    while at < stop:
        c = text[at]
        if c == 34:
            at = string_stop(text, at + 1, stop)
            if at < 0:
                return False
        elif c == 123 or c == 91:
            depth += 1
        elif c == 125 or c == 93:
            depth -= 1
        if depth < 0 or c == 44 and depth == 0:
            # A long member is a run of its own.
            if at - place.member >= size and place.member > place.run:
                cut[0] = place.member - 1
                return True
            if depth < 0 or at - place.run >= size:
                cut[0] = at
                return True
            place.member = at + 1
        at += 1
    return False


cdef class Cuts:
    cdef int find(self, bytes text, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size) except -1:
        cdef const char* p = text
        cdef Place place
        cdef Py_ssize_t cut = 0
        cdef bint found
        self.runs = []
        self.end = -1
        place.at = place.run = place.member = start + 1
        while True:
            with nogil:
                found = next_cut(p, &place, stop, size, &cut)
            if not found:
                return 0
            self.runs.append((place.run, cut))
            if p[cut] != 44:
                self.end = cut
                return 0
            place.run = place.member = place.at = cut + 1


cdef Py_ssize_t past_blank(const char* p, Py_ssize_t at, Py_ssize_t stop) noexcept nogil:
    while at < stop and (p[at] == 32 or p[at] == 10 or p[at] == 13 or p[at] == 9):
        at += 1
    return at


cdef object decoded(bytes text, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size, int depth):
    cdef const char* p = text
    cdef bytes piece
    start = past_blank(p, start, stop)
    if stop - start > size and depth < MAX_DEPTH and (p[start] == 91 or p[start] == 123):
        return contained(text, start, stop, size, depth)
    if stop - start > size and p[start] == 34:
        return long_text(text, start, stop, size)
    piece = text if start == 0 and stop == len(text) else text[start:stop]
    return loads(piece)


cdef inline bint is_hex_of(const char* text, Py_ssize_t at, Py_ssize_t stop, char low, char high) noexcept nogil:
    """Whether the escape at `at` is one of U+D800 to U+DFFF whose second digit is from `low` to `high`."""
    cdef char second
    if at + 6 > stop or text[at] != 92 or text[at + 1] != 117 or text[at + 2] | 0x20 != 100:
        return False
    second = text[at + 3] | 0x20 if text[at + 3] >= 65 else text[at + 3]
    return low <= second <= high


cdef Py_ssize_t text_cut(const char* text, Py_ssize_t at, Py_ssize_t stop, Py_ssize_t size) noexcept nogil:
    """Where a piece of `size` bytes or a few more may end: not within a character, an escape or a pair of surrogates."""
    cdef Py_ssize_t least = at + size
    while at < stop and (at < least or text[at] & 0xC0 == 0x80):
        if text[at] != 92:
            at += 1
        elif at + 1 < stop and text[at + 1] == 117:
            if (is_hex_of(text, at, stop, 56, 57) or is_hex_of(text, at, stop, 97, 98)) and is_hex_of(text, at + 6, stop, 99, 102):
                at += 6
            at += 6
        else:
            at += 2
    return min(at, stop)


cdef str long_text(bytes text, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size):
    """The string that begins at `start`."""
    cdef const char* p = text
    cdef Py_ssize_t end, cut
    cdef Py_ssize_t at = start + 1
    cdef list pieces = []
    with nogil:
        end = string_stop(p, at, stop)
    if end < 0 or past_blank(p, end + 1, stop) != stop:
        raise Garbage("not JSON")
    while at < end:
        with nogil:
            cut = text_cut(p, at, end, size)
        pieces.append(loads(b'"' + text[at:cut] + b'"'))
        at = cut
    return "".join(pieces)


cdef object contained(bytes text, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size, int depth):
    """The array or object that begins at `start`."""
    cdef const char* p = text
    cdef bint is_list = p[start] == 91
    cdef Cuts cuts = Cuts.__new__(Cuts)
    cdef Py_ssize_t first, last
    cdef list items = []
    cdef dict members = {}
    cuts.find(text, start, stop, size)
    if cuts.end < 0 or p[cuts.end] != (93 if is_list else 125) or past_blank(p, cuts.end + 1, stop) != stop:
        raise Garbage("not JSON")
    for first, last in cuts.runs:
        if past_blank(p, first, last) == last and len(cuts.runs) > 1:
            raise Garbage("not JSON")      # a comma too many
        if last - first <= 2 * size:
            if is_list:
                items += <list>loads(b"[" + text[first:last] + b"]")
            else:
                members.update(<dict>loads(b"{" + text[first:last] + b"}"))
        elif is_list:
            items.append(decoded(text, first, last, size, depth + 1))
        else:
            add_member(members, text, first, last, size, depth)
    return items if is_list else members


cdef int add_member(dict members, bytes text, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size, int depth) except -1:
    """Decodes one long member of an object."""
    cdef const char* p = text
    cdef Py_ssize_t at = past_blank(p, start, stop)
    cdef Py_ssize_t name = at
    if at == stop or p[at] != 34:
        raise Garbage("not JSON")
    at = string_stop(p, at + 1, stop) + 1
    if at == 0:
        raise Garbage("not JSON")
    key = loads(text[name:at])
    at = past_blank(p, at, stop)
    if at == stop or p[at] != 58:
        raise Garbage("not JSON")
    at += 1
    if past_blank(p, at, stop) == stop:
        raise Garbage("not JSON")
    members[key] = decoded(text, at, stop, size, depth + 1)
    return 0


def load_sliced(bytes text not None, Py_ssize_t slice_bytes=SLICE):
    cdef Py_ssize_t stop = len(text)
    if slice_bytes < 1:
        raise ValueError("a slice has at least one byte")
    return decoded(text, 0, stop, slice_bytes, 0)


def cuts(bytes text not None, Py_ssize_t slice_bytes):
    cdef Cuts found = Cuts.__new__(Cuts)
    if not text or text[0] not in b"[{" or slice_bytes < 1:
        raise ValueError("neither array nor object")
    found.find(text, 0, len(text), slice_bytes)
    if found.end < 0:
        raise ValueError("neither array nor object")
    return found.runs


# -- writing -----------------------------------------------------------------------------------------------------------
cdef int write(list out, object value, Py_ssize_t size, int depth) except -1:
    cdef bint first = True
    if depth < MAX_DEPTH and type(value) is dict and value:
        out.append(b"{")
        for name, one in (<dict>value).items():
            if not isinstance(name, str):
                raise TypeError("Dict key must be str")
            if not first:
                out.append(b",")
            first = False
            out.append(dumps(name))
            out.append(b":")
            write(out, one, size, depth + 1)
        out.append(b"}")
        return 0
    if depth < MAX_DEPTH and type(value) is list and value:
        return write_list(out, <list>value, size, depth)
    if type(value) is str and len(<str>value) > size:
        return write_text(out, <str>value, size)
    out.append(dumps(value))
    return 0


cdef int write_text(list out, str value, Py_ssize_t size) except -1:
    cdef Py_ssize_t at
    cdef bytes piece
    out.append(b'"')
    for at in range(0, len(value), size):
        piece = dumps(value[at:at + size])
        out.append(piece[1:len(piece) - 1])
    out.append(b'"')
    return 0


cdef Py_ssize_t weight(object value, Py_ssize_t limit, int depth) except -1:
    """Return about how many bytes a value takes as JSON; somewhat more than the limit is as good as any more."""
    cdef Py_ssize_t found = 2
    if type(value) is str:
        return len(<str>value) + 2
    if depth >= WEIGHED_DEPTH or type(value) is not dict and type(value) is not list:
        return SCALAR
    if type(value) is dict:
        for name, one in (<dict>value).items():
            found += (len(<str>name) if type(name) is str else SCALAR) + 3 + weight(one, limit, depth + 1)
            if found > limit:
                break
    else:
        for one in <list>value:
            found += 1 + weight(one, limit, depth + 1)
            if found > limit:
                break
    return found


cdef int write_list(list out, list values, Py_ssize_t size, int depth) except -1:
    """Write runs of items that come to `size` bytes together. What is longer by itself is cut."""
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t stop = 0
    cdef Py_ssize_t sum, one
    cdef bytes piece
    out.append(b"[")
    while at < len(values):
        if at:
            out.append(b",")
        sum = weight(values[at], size, 0)
        stop = at + 1
        while sum <= size and stop < len(values):
            one = weight(values[stop], size, 0)
            if sum + one > size:
                break
            sum += one
            stop += 1
        if sum > size:
            write(out, values[at], size, depth + 1)
        else:
            piece = dumps(values[at:stop])
            out.append(piece[1:len(piece) - 1])
        at = stop
    out.append(b"]")
    return 0


def dump_pieces(value, Py_ssize_t slice_bytes=SLICE):
    cdef list out = []
    if slice_bytes < 1:
        raise ValueError("a slice has at least one byte")
    write(out, value, slice_bytes, 0)
    return out


def dump_sliced(value, Py_ssize_t slice_bytes=SLICE):
    return b"".join(dump_pieces(value, slice_bytes))
