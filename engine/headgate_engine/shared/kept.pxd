# The part of the shared memory that outlives all processes of a gateway: a segment of its own, in a file.

from headgate_engine.shared.segment cimport Segment, SlotRef

# Finds or makes a zeroed slot of STATE in `segment.kept`, or in the segment itself where there is no such part or it is
# full. A key leads to the same slot in all processes. Raises what Segment.slot() raises.
cdef SlotRef kept_slot(Segment segment, bytes key, int kind, Py_ssize_t size)
