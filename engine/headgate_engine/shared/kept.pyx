"""What outlives all processes of a gateway; see kept.pxd.

The kernel keeps the pages of a file that is mapped, so what was stored there is there after a kill of every process, and
costs a store no more than other memory. The blocks of the file have to be there: a store into a page for which there is
no room on the disk ends the process.
"""

from headgate_engine.shared.area cimport SlotRequest, aligned
from headgate_engine.shared.lock cimport acquire, release
from headgate_engine.shared.segment cimport STATE, Segment, SegmentHeader, SlotRef

import os

cdef enum:
    # Of metrics, of which there are none in such a file.
    SERIES_ROOM = 65536

# Bytes of the smallest file.
LEAST_BYTES = 65536 + SERIES_ROOM + aligned(sizeof(SegmentHeader))


def lay_out_file(int fd):
    """Return a new segment for limits in an open file, which has its size and its blocks already."""
    cdef Segment segment = Segment.__new__(Segment)
    cdef Py_ssize_t size = os.fstat(fd).st_size
    if size < LEAST_BYTES or size % aligned(1):
        raise ValueError("the file is too small, or has no whole lines")
    segment._map(fd, size)
    segment.fd = -1
    segment._lay_out(size - aligned(sizeof(SegmentHeader)) - SERIES_ROOM, 0)
    segment.fd = fd
    return segment


def keep(Segment segment not None, Segment kept not None):
    """Let what outlives all processes of a segment lie in another one."""
    if segment.kept is not None or kept is segment:
        raise ValueError("there is such a segment already")
    segment.kept = kept


cdef SlotRef kept_slot(Segment segment, bytes key, int kind, Py_ssize_t size):
    cdef SlotRequest request
    cdef SlotRef found
    if segment.kept is None:
        return segment.slot(key, kind, size, NULL)
    request.kind, request.size, request.first, request.reserve = kind, size, NULL, False
    # Under one lock: two processes must not choose differently.
    acquire(&segment.header.placing)
    try:
        found = segment.kept._requested(&request, STATE, key, False)
        if found is None:
            found = segment._requested(&request, STATE, key, False)
        if found is None:
            found = segment.kept._requested(&request, STATE, key)
        return segment.slot(key, kind, size, NULL) if found is None else found
    finally:
        release(&segment.header.placing)
