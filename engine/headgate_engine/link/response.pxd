# What every response goes through before it leaves for the client: the steps of route, backend and listener, and what is known
# of its length.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.core cimport RequestCore

from libc.stdint cimport int64_t

# Runs the response steps; False when one raised: what it would have changed must not pass. None runs after that.
cdef bint run_response_steps(RequestCore request) except -1
# BodySize of a response that passes; `rewritten`: its length may change on the way.
cdef int response_size(MessageHead request, MessageHead head, bint rewritten, int64_t* length) noexcept
# Puts the headers on the response that policies have collected for it.
cdef int put_collected(RequestContext ctx) except -1
# The head goes to the client.
cdef int start_response(RequestCore request, MessageHead head, bint rewritten) except -1
# A whole response goes to the client, behind the response steps, and the request is over.
cdef int send_whole(RequestCore request, MessageHead head, bytes body) except -1
# The same for an answer of the gateway; a gRPC client gets it as it understands it.
cdef int send_reply(RequestCore request, Reply reply) except -1
cdef MessageHead head_of(int status, object fields)
cdef Reply with_detail(Reply reply, str detail)
