# What clients keep at a provider: files, batches, stored responses, vector stores, calls. Requests for it name no model in a
# body; the model, the provider and the caller that it belongs to are sealed in its id.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.target cimport LlmTarget, ModelEntry

cdef class Resources:
    cdef readonly object ids             # headgate.backend.llm.bound_ids.BoundIds
    cdef readonly dict providers         # name (bytes) -> llm.public.PublicModel that clients may choose
    cdef readonly bytes default_provider      # takes what names no model; None: nobody
    cdef readonly bint shared_lists      # callers that are known may read lists of what all have

    # Reads the choices in the head, and puts the provider's ids into the target; a Reply refuses the request.
    cdef Reply open_target(self, RequestContext ctx, LlmCall call)
    # Puts the provider's ids into the body.
    cdef Reply open_body(self, RequestContext ctx, LlmCall call)
    # The head of a later attempt: what open_target() took out of it.
    cdef int clear(self, RequestContext ctx) except -1
    # Finds model or provider of a request whose body names none.
    cdef Reply aside(self, RequestContext ctx, LlmCall call, bytes path)
    # The entry of the provider that the request chose.
    cdef Reply select(self, RequestContext ctx, LlmCall call)
    # Refuses lists of what others have made.
    cdef Reply listed(self, RequestContext ctx, bytes path)
    # Whether the body may go on unread: an upload that the head says enough of.
    cdef bint passes_unread(self, RequestContext ctx, bytes path, Py_ssize_t most) except -1
    # What ids in the answer are sealed with; None: they stay.
    cdef bytes place_of(self, RequestContext ctx, LlmCall call, LlmTarget target)

# The entry without targets of other accounts, and with guarded 0 or 1 without those that are guarded or not; None: none is left.
cdef ModelEntry bound_entry(ModelEntry entry, bytes account, int guarded)
# No target of the account may be used.
cdef Reply NOT_BOUND
# The body with another model in its session.
cdef bytes renamed(bytes body, str model)
