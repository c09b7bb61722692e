# HPACK (RFC 7541): header blocks to fields of a head, and fields to header blocks.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.http2.table cimport DynamicTable
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport uint32_t, uint64_t

cdef enum Indexing:
    INDEX_USUAL = 0       # the encoder decides by the name
    INDEX_NEVER = 1       # no table on the way may hold it (credentials; RFC 7541 section 7.1.3)

cdef class HpackDecoder:
    cdef readonly DynamicTable table
    cdef uint32_t limit           # the largest table that the peer may ask for
    cdef bint shrink_due          # the limit was lowered below what the peer uses: its next block must begin with an update
    cdef uint32_t max_list        # bytes of a field list as RFC 9113 section 6.5.2 counts them
    cdef int max_fields
    cdef uint64_t list_size
    cdef bint overflowed

    # The peer has acknowledged this SETTINGS_HEADER_TABLE_SIZE.
    cdef int set_limit(self, uint32_t limit) except -1
    # Decodes a whole block into fields of the head, with pseudo-header fields as they come, ids and flags not set but
    # SPAN_SENSITIVE for what must never be indexed. Returns 1 if the list is over a limit: fields are missing, the table is
    # right. Raises ConnectionFault; the decoder must not be used any more.
    cdef int decode(self, MessageHead head, const char* p, Py_ssize_t n) except -1
    cdef int _field(self, MessageHead head, const char** at, const char* end, int prefix, int kind) except -1
    cdef int _name(self, MessageHead head, uint32_t index) except -1
    cdef int _value(self, MessageHead head, uint32_t index) except -1
    cdef int _text(self, MessageHead head, const char** at, const char* end) except -1
    cdef int _resize(self, const char** at, const char* end) except -1
    cdef int _keep(self, MessageHead head, uint32_t start, uint32_t name_len, int flags) except -1

cdef class HpackEncoder:
    cdef readonly DynamicTable table
    cdef uint32_t most            # our own bound of the table
    cdef uint32_t lowest          # the least limit since the last block
    cdef bint update_due

    # The peer's SETTINGS_HEADER_TABLE_SIZE.
    cdef int set_limit(self, uint32_t limit) except -1
    # Begins a block.
    cdef int begin(self, ByteBuffer out) except -1
    # Appends a field; the name is in lower case. `indexing`: Indexing.
    cdef int field(self, ByteBuffer out, const char* name, Py_ssize_t n, const char* value, Py_ssize_t m, int indexing) except -1

cdef int put_integer(ByteBuffer out, int first, int prefix, uint32_t value) except -1
