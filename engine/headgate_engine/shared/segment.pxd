# A shared memory segment with named slots. The supervisor creates it, workers attach by the inherited descriptor. A key
# leads to the same memory in every process.
#
# The segment has two areas, so that neither takes room from the other: STATE (limits, endpoints, claims), and SERIES
# (metrics), whose number has a limit. Both are far larger than necessary: the file is sparse, and pages that were never
# written cost nothing.
#
# Layout: header | entries of STATE | heap of STATE | entries of SERIES | heap of SERIES. A heap allocates blocks of
# whole cache lines, for values with their keys and for the hash table from keys to entries.
#
# An object that uses a slot has a SlotRef. An entry has one bit for each process with SlotRefs (its holders). A slot of
# STATE is freed with its last holder: while a request or a worker still uses a plan of an old configuration, its slots
# stay. A series without holders stays, since its value counts, until sweep() frees it.

from headgate_engine.shared.area cimport HOLDER_WORDS, AreaHeader, SlotRequest

from libc.stdint cimport uint32_t, uint64_t

cdef enum SlotKind:
    SLOT_COUNTER = 1
    SLOT_GAUGE = 2
    SLOT_HISTOGRAM = 3
    SLOT_BUCKET = 4
    SLOT_ENDPOINT = 5
    SLOT_CLAIMS = 6
    SLOT_MONEY = 7
    SLOT_REQUESTS = 8            # a histogram with a count of bytes: three families of one label combination
    SLOT_LOADS = 9
    SLOT_EXEMPLARS = 10          # of one histogram, beside it

cdef enum:
    STATE = 0
    SERIES = 1
    AREAS = 2
    # Further processes share the last bit, which is never cleared.
    LAST_HOLDER = 64 * HOLDER_WORDS - 1

cdef struct SegmentHeader:
    uint64_t magic               # stored last by create()
    uint32_t version
    uint32_t native              # histograms have exponential buckets beside those of their bounds
    uint64_t size                # bytes of the whole segment
    uint64_t lock                # shared.lock word
    uint64_t generation          # number of the configuration, for sweep()
    uint64_t refused             # times that a series found no room
    AreaHeader areas[AREAS]
    uint64_t placing             # shared.lock word of whoever chooses between this segment and `kept`

cdef class SlotRef:
    # A slot in use. `memory` is 64-byte aligned and valid as long as this object lives.
    cdef Segment segment
    cdef char* memory
    cdef int area
    cdef uint32_t number         # of the entry, from 1; 0: this object owns the memory
    cdef bint other              # counts for series that found no room

cdef class Segment:
    cdef readonly int fd
    cdef char* memory
    cdef Py_ssize_t length
    cdef SegmentHeader* header
    cdef readonly int holder               # this process's bit
    cdef uint64_t owner                    # shared.lock word of the process that made this object
    cdef uint32_t* counts[AREAS]           # SlotRefs of this process, by number of the entry
    cdef uint32_t counted[AREAS]           # lengths of these arrays
    cdef readonly Segment kept             # what outlives all processes lies there (shared.kept); None: nothing does

    # Finds or makes a slot of `size` bytes. A new one is zeroed or a copy of `first` before it becomes visible. Raises
    # SegmentFull, and ValueError if the key leads to a slot of another kind or size.
    cdef SlotRef slot(self, bytes key, int kind, Py_ssize_t size, const void* first)
    # As slot(), for a series; never raises SegmentFull. A series without room is counted in the series of its family
    # with all label values `other`, and if that has no room either, in memory that no snapshot shows.
    cdef SlotRef series(self, bytes key, int kind, Py_ssize_t size, const void* first)
    # As series(), but only while a quarter of the series is free: None, where there is no room.
    cdef SlotRef spare_series(self, bytes key, int kind, Py_ssize_t size)
    # Returns the key of a slot in use.
    cdef bytes key_of(self, SlotRef ref)
    # make: whether a slot is made where there is none.
    cdef SlotRef _requested(self, SlotRequest* request, int area, bytes key, bint make=*)
    cdef int _count(self, int area, uint32_t number) noexcept nogil
    cdef int _hold(self, int area, uint32_t number) noexcept nogil
    cdef int _drop(self, int area, uint32_t number) noexcept nogil
    cdef tuple _copy(self, int area, uint32_t number)
