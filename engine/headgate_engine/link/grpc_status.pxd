# The gateway's own answers to gRPC calls: a client of that protocol reads the failure from fields, not from the status.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply

cdef bint is_grpc(MessageHead request) noexcept
cdef Reply grpc_reply(Reply reply)
