# The gateway's own answers to gRPC calls: a client of that protocol reads the failure from fields, not from the status.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply

cdef bint is_grpc(MessageHead request) noexcept
cdef Reply grpc_reply(Reply reply)

cdef enum:
    GRPC_NONE = -1          # not gRPC
    GRPC_LATER = 100000     # its trailers will tell

cdef int grpc_status(MessageHead response, MessageHead trailers) except -2
