# What is changed in LLM bodies, and what expressions are told of them.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.foreign cimport ForeignHistory
from headgate_engine.llm.target cimport FormatRoute, LlmEdits
from headgate_engine.llm.top_members cimport TopMembers
from headgate_engine.peek.json cimport ChatPeek

from libc.stdint cimport int64_t

# The JSON of the body. What lies below its top must not be changed.
cdef object document_of(RequestContext ctx)
# Sets `llmRequest`, for expressions: the body as it is now, with the model wherever it was named.
cdef dict tell_request(RequestContext ctx, LlmCall call)
# (members to set as raw JSON, names to remove, model) by the edits of a target.
cdef tuple edited(RequestContext ctx, LlmCall call, LlmEdits edits, model)
# The same for the last transformations, which see the provider's format.
cdef bint finally_edited(RequestContext ctx, LlmCall call, LlmEdits edits) except -1
# Makes turns of other vendors in the body fit for the provider.
cdef int make_fit(RequestContext ctx, LlmCall call, ForeignHistory history) except -1
# (sets, removes) that give `max_tokens`, as the edits leave it, the name that these models know.
cdef tuple short_limits(LlmCall call, sets, removes, dict defaults)
# Sets `stream_options` that ask for the usage of a stream, unless they say themselves what is wanted; returns removes.
cdef object usage_wanted(RequestContext ctx, LlmCall call, bytes body, dict sets, removes, dict defaults)
# The path that a new request asks for, and the head with it: Azure's are made those of other clients.
cdef bytes asked_path(MessageHead head, LlmCall call)
# Writes call.deployment into the body; returns whether that is an object.
cdef bint name_deployment(RequestContext ctx, LlmCall call) except -1
# The route that the request takes, with its body as edits leave it: another one for several choices where the provider makes
# one at a time.
cdef FormatRoute route_of(RequestContext ctx, LlmCall call)
# The answer to a counting request that no provider can be asked. added: tokens of prompts that the gateway adds.
cdef Reply estimated(RequestContext ctx, LlmCall call, bytes body, int64_t added)
# What routing reads of the body, which a long one had read beside the loop; else `own` reads it. None: it is no JSON.
cdef ChatPeek routing_peek(RequestContext ctx, ChatPeek own)
# Whether a long body has so many members at its top that no edit should look at them all.
cdef bint too_many(RequestContext ctx, ChatPeek peek)
# Where the members of this very body stand; None: that has to be looked for.
cdef TopMembers members_known(RequestContext ctx, bytes body)
# Puts the body with edits (llm/edit) into force. False: it is a long one with so many members at its top that no edit should
# look at them all.
cdef bint edit_members(RequestContext ctx, bytes body, dict sets, dict defaults, object removes) except -1
# Takes the body out of its content coding, from what was made beside the loop if that was of this very body. The answer for
# one that cannot be, or that has more than `most` bytes.
cdef Reply uncoded(RequestContext ctx, LlmCall call, Py_ssize_t most)
