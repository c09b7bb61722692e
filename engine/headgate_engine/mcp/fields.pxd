# The head of a client's request to an MCP target: whether the engine can pass the request on by itself, and the head that
# the target gets (StreamableHTTP, revisions with sessions).

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.peek.rpc cimport RpcMessage

cdef class ClientHead:
    cdef str session_id                # None: the client names none
    cdef bint plain                    # False: Python has to look at it
    cdef int read(self, MessageHead head) except -1

# Copies the fields that are meant for a target. Those that hold a credential of the client stay behind; `without`: further
# names that do, in lower case.
cdef int copy_fields(RequestContext ctx, MessageHead to, tuple without) except -1
# Adds what the message itself says; `name`: what it is about, as its target knows it. False where a field cannot hold it
# as it is.
cdef bint add_mirrored(MessageHead to, RpcMessage message, str name) except -1
cpdef bint is_message(bytes data) except -1
