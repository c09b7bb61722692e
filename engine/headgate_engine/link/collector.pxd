# The request body that nobody has taken yet: for steps and backends that read it, or until a connection is there. Made when
# the first of it has to wait; a body that goes straight upstream has none.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class BodyCollector:
    cdef ByteBuffer waiting          # bytes that have come and were not taken
    cdef MessageHead trailers        # once the request has ended with some

    # Puts bytes that were taken in front again.
    cdef int put_back(self, ByteBuffer taken) except -1

# Fills ctx.body with the whole body, or with as much of it as a step wants; False when that has not come yet. `collector`
# None: nothing waits. `complete`: the client has sent all.
cdef bint fill_body(RequestContext ctx, BodyCollector collector, bint complete) except -1
# The same for a body that has come to its end.
cdef int take_body(RequestContext ctx, BodyCollector collector) except -1
