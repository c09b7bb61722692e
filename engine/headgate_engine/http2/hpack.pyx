# cython: boundscheck=False
"""HPACK (RFC 7541); see hpack.pxd.

boundscheck is off: every read is compared with the end of the block first, and every write has reserved its room.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from headgate_engine.context.headers cimport HeaderSpan, MessageHead, SPAN_SENSITIVE
from headgate_engine.http2.huffman cimport huffman_put, huffman_read, huffman_size
from headgate_engine.http2.kinds cimport DEFAULT_TABLE, E_COMPRESSION
from headgate_engine.http2.table cimport (
    ENTRY_COST, STATIC_COUNT, DynamicTable, StaticEntry, TableEntry, static_entry, static_search)
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.http2.faults import ConnectionFault

cdef enum:
    # Integers above it are refused: no length and no index comes near it.
    MAX_INTEGER = 268435455
    MAX_NAME = 65535              # what a span can say
    MAX_UPDATES = 2               # of the table's size in one block (RFC 7541 section 4.2)
    # Kinds of fields.
    KIND_PLAIN = 0
    KIND_NEVER = 1
    KIND_INDEX = 2

# Fields whose values seldom come twice: entries for them would only drive out others.
SELDOM = (b":path", b"age", b"content-length", b"etag", b"if-modified-since", b"if-none-match", b"last-modified", b"location",
          b"content-range", b"expires")

cdef uint8_t[STATIC_COUNT + 1] IS_SELDOM


cdef int _fill() except -1:
    cdef uint32_t index
    for index in range(1, STATIC_COUNT + 1):
        IS_SELDOM[index] = static_entry(index).name[:static_entry(index).name_len] in SELDOM
    return 0


_fill()


cdef int refuse(str reason) except -1:
    raise ConnectionFault(reason, E_COMPRESSION)


cdef int read_integer(const char** at, const char* end, int prefix, uint32_t* found) except -1:
    """Read an integer that begins in the low bits of the first byte (RFC 7541 section 5.1)."""
    cdef uint32_t mask = (1 << prefix) - 1
    cdef uint64_t value = <uint8_t>at[0][0] & mask
    cdef int shift = 0
    cdef uint8_t byte
    at[0] += 1
    if value == mask:
        while True:
            if at[0] == end:
                refuse("integer without an end")
            byte = <uint8_t>at[0][0]
            at[0] += 1
            value += <uint64_t>(byte & 127) << shift
            if value > MAX_INTEGER:
                refuse("integer is too large")
            if not byte & 128:
                break
            shift += 7
            if shift > 28:
                refuse("integer is too long")
    found[0] = <uint32_t>value
    return 0


cdef class HpackDecoder:
    def __init__(self, uint32_t max_list=65536, int max_fields=256, uint32_t limit=DEFAULT_TABLE):
        self.table = DynamicTable(DEFAULT_TABLE)
        self.limit = DEFAULT_TABLE
        self.max_list = max_list
        self.max_fields = max_fields
        if limit != DEFAULT_TABLE:
            self.set_limit(limit)

    cdef int set_limit(self, uint32_t limit) except -1:
        self.limit = limit
        self.shrink_due = self.table.limit > limit
        return 0

    cdef int decode(self, MessageHead head, const char* p, Py_ssize_t n) except -1:
        cdef const char* end = p + n
        cdef uint8_t byte
        cdef int updates = 0
        cdef bint begun = False
        self.list_size = 0
        self.overflowed = False
        while p < end:
            byte = <uint8_t>p[0]
            if byte & 0xE0 == 0x20:
                updates += 1
                if begun or updates > MAX_UPDATES:
                    refuse("update of the table's size at a wrong place")
                self._resize(&p, end)
                continue
            if not begun:
                if self.shrink_due:
                    refuse("the table was not made smaller")
                begun = True
            if byte & 0x80:
                self._field(head, &p, end, 7, -1)
            elif byte & 0x40:
                self._field(head, &p, end, 6, KIND_INDEX)
            else:
                self._field(head, &p, end, 4, KIND_NEVER if byte & 0x10 else KIND_PLAIN)
        return 1 if self.overflowed else 0

    cdef int _resize(self, const char** at, const char* end) except -1:
        cdef uint32_t limit
        read_integer(at, end, 5, &limit)
        if limit > self.limit:
            refuse("the table is larger than allowed")
        self.shrink_due = False
        return self.table.set_limit(limit)

    cdef int _field(self, MessageHead head, const char** at, const char* end, int prefix, int kind) except -1:
        """Read one field; kind -1: one that a table has whole."""
        cdef uint32_t index
        cdef uint32_t start = head.length
        cdef uint32_t name_len
        read_integer(at, end, prefix, &index)
        if kind < 0:
            if index == 0:
                refuse("field with index 0")
            if self.overflowed and index <= STATIC_COUNT + self.table.next - self.table.first:
                return 0          # a byte of the block must not cost a whole field's copy
            self._name(head, index)
            name_len = head.length - start
            self._value(head, index)
            return self._keep(head, start, name_len, 0)
        if index:
            self._name(head, index)
        else:
            self._text(head, at, end)
        name_len = head.length - start
        self._text(head, at, end)
        if kind == KIND_INDEX:
            # The name may be that of an entry that makes room: it is a copy by now (RFC 7541 section 4.4).
            self.table.insert(head.data + start, name_len, head.data + start + name_len, head.length - start - name_len)
        return self._keep(head, start, name_len, SPAN_SENSITIVE if kind == KIND_NEVER else 0)

    cdef int _name(self, MessageHead head, uint32_t index) except -1:
        cdef const StaticEntry* fixed = static_entry(index)
        cdef const TableEntry* found
        if fixed != NULL:
            head._put(fixed.name, fixed.name_len)
            return 0
        found = self.table.entry(index - STATIC_COUNT - 1)
        if found == NULL:
            refuse("there is no entry with this index")
        head._put(self.table.data + found.off, found.name_len)
        return 0

    cdef int _value(self, MessageHead head, uint32_t index) except -1:
        cdef const StaticEntry* fixed = static_entry(index)
        cdef const TableEntry* found
        if fixed != NULL:
            head._put(fixed.value, fixed.value_len)
            return 0
        found = self.table.entry(index - STATIC_COUNT - 1)
        if found != NULL:         # always: _name() has found it
            head._put(self.table.data + found.off + found.name_len, found.value_len)
        return 0

    cdef int _text(self, MessageHead head, const char** at, const char* end) except -1:
        """Read a string literal to the end of the head's bytes."""
        cdef uint32_t n
        cdef Py_ssize_t length
        cdef bint coded
        if at[0] == end:
            refuse("field without an end")
        coded = <uint8_t>at[0][0] & 0x80 != 0
        read_integer(at, end, 7, &n)
        if n > end - at[0]:
            refuse("string without an end")
        if coded:
            head.reserve(2 * n)
            length = huffman_read(head.data + head.length, at[0], n)
            if length < 0:
                refuse("string that is no Huffman code")
            head.length += <uint32_t>length
        else:
            head._put(at[0], n)
        at[0] += n
        return 0

    cdef int _keep(self, MessageHead head, uint32_t start, uint32_t name_len, int flags) except -1:
        """Make a field of the bytes since `start`, or drop them where the list is too long."""
        cdef HeaderSpan span
        cdef uint32_t n = head.length - start
        self.list_size += n + ENTRY_COST
        if self.overflowed or self.list_size > self.max_list or head.count >= self.max_fields or name_len > MAX_NAME:
            self.overflowed = True
            head.length = start
            return 0
        span.name_off = start
        span.name_len = <unsigned short>name_len
        span.value_off = start + name_len
        span.value_len = n - name_len
        span.id = 0
        span.flags = <uint8_t>flags
        return head.push_span(span)


# -- encoder -----------------------------------------------------------------------------------------------------------
cdef int put_integer(ByteBuffer out, int first, int prefix, uint32_t value) except -1:
    cdef uint32_t mask = (1 << prefix) - 1
    if value < mask:
        return out.append_byte(<char>(first | value))
    out.append_byte(<char>(first | mask))
    value -= mask
    while value >= 128:
        out.append_byte(<char>(value & 127 | 128))
        value >>= 7
    return out.append_byte(<char>value)


cdef int put_text(ByteBuffer out, const char* p, Py_ssize_t n) except -1:
    """Append a string literal, in the Huffman code where that is shorter."""
    cdef Py_ssize_t coded = huffman_size(p, n)
    cdef char* to
    if coded >= n:
        put_integer(out, 0, 7, <uint32_t>n)
        return out.append(p, n)
    put_integer(out, 0x80, 7, <uint32_t>coded)
    out.reserve(coded)
    to = huffman_put(out.data + out.length, p, n)
    out.length = to - out.data
    return 0


cdef class HpackEncoder:
    def __init__(self, uint32_t most=DEFAULT_TABLE):
        self.most = most
        self.table = DynamicTable(DEFAULT_TABLE, True)
        self.lowest = DEFAULT_TABLE
        if most < DEFAULT_TABLE:
            self.set_limit(DEFAULT_TABLE)

    cdef int set_limit(self, uint32_t limit) except -1:
        limit = min(limit, self.most)
        if limit == self.table.limit and not self.update_due:
            return 0
        self.lowest = min(limit, self.lowest if self.update_due else self.table.limit)
        self.update_due = True
        return self.table.set_limit(limit)

    cdef int begin(self, ByteBuffer out) except -1:
        if self.update_due:
            # A limit that was lower for a while has evicted entries: the peer has to be told of it as well.
            if self.lowest < self.table.limit:
                put_integer(out, 0x20, 5, self.lowest)
            put_integer(out, 0x20, 5, self.table.limit)
            self.update_due = False
        return 0

    cdef int field(self, ByteBuffer out, const char* name, Py_ssize_t n, const char* value, Py_ssize_t m, int indexing) except -1:
        cdef bint whole
        cdef uint32_t index = static_search(name, n, value, m, &whole)
        cdef uint32_t other = 0
        cdef bint seldom = IS_SELDOM[index]
        if m > MAX_INTEGER or n > MAX_INTEGER:
            raise ValueError("a field is too long")
        if indexing != INDEX_NEVER:
            if not whole and not seldom:
                other = self.table.search(name, n, value, m, &whole)
                if whole or index == 0:
                    index = other
            if whole:
                return put_integer(out, 0x80, 7, index)
            seldom = seldom or is_seldom(name, n) or n + m + ENTRY_COST > self.table.limit - (self.table.limit >> 2)
        if indexing == INDEX_NEVER:
            put_integer(out, 0x10, 4, index)
        elif seldom:
            put_integer(out, 0, 4, index)
        else:
            put_integer(out, 0x40, 6, index)
        if index == 0:
            put_text(out, name, n)
        put_text(out, value, m)
        if indexing != INDEX_NEVER and not seldom:
            self.table.insert(name, n, value, m)
        return 0


cdef bint is_seldom(const char* name, Py_ssize_t n) noexcept nogil:
    """Return whether a name without a static entry has a new value each time."""
    return n == 11 and memcmp(name, b"traceparent", 11) == 0 or n == 12 and memcmp(name, b"x-request-id", 12) == 0
