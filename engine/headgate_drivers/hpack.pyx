"""HPACK by itself: header blocks of fields, and the entries of a table."""

from headgate_engine.context.headers cimport MessageHead, SPAN_SENSITIVE, new_head
from headgate_engine.http2.hpack cimport INDEX_NEVER, INDEX_USUAL, HpackDecoder, HpackEncoder
from headgate_engine.http2.table cimport DynamicTable, TableEntry
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport uint32_t, uint64_t


def decoded(HpackDecoder decoder not None, bytes block not None):
    """Return (name, value, never indexed) of each field of a block, and whether the list was over a limit."""
    cdef MessageHead head = new_head()
    cdef int i
    cdef bint over = decoder.decode(head, block, len(block))
    found = []
    for i in range(head.count):
        found.append((head.data[head.spans[i].name_off:head.spans[i].name_off + head.spans[i].name_len],
                      head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len],
                      head.spans[i].flags & SPAN_SENSITIVE != 0))
    return found, over


def encoded(HpackEncoder encoder not None, fields not None):
    """Return the block of an iterable of (name, value, never indexed)."""
    cdef ByteBuffer out = ByteBuffer()
    cdef bytes name, value
    encoder.begin(out)
    for name, value, never in fields:
        if name is None or value is None:
            raise TypeError("a field needs a name and a value")
        encoder.field(out, name, len(name), value, len(value), INDEX_NEVER if never else INDEX_USUAL)
    return bytes(out)


def memory_of(DynamicTable table not None):
    """Return the bytes that ring and contents of a table take."""
    return table.room + table.places * sizeof(TableEntry)


def add_entry(DynamicTable table not None, bytes name not None, bytes value not None):
    table.insert(name, len(name), value, len(value))


def entries_of(DynamicTable table not None):
    """Return (name, value) of all entries, the newest first."""
    cdef const TableEntry* found
    cdef uint64_t age
    listed = []
    for age in range(table.next - table.first):
        found = table.entry(age)
        listed.append((table.data[found.off:found.off + found.name_len],
                       table.data[found.off + found.name_len:found.off + found.name_len + found.value_len]))
    return listed


def find_entry(DynamicTable table not None, bytes name not None, bytes value not None):
    """Return the index in the common address space (0: none), and whether the value is the same too."""
    cdef bint whole = False
    cdef uint32_t index = table.search(name, len(name), value, len(value), &whole)
    return index, whole
