# Batches of Anthropic's: each of their requests names a model, and all go to one provider.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.target cimport LlmTarget, ModelEntry

cdef class BatchModels:
    cdef bytes body                      # that was read
    cdef list spans                      # [(start, stop, name)] of the models in it, quotes included
    cdef readonly list names             # of all models, each once, in their order
    cdef dict entries                    # name -> ModelEntry; empty: the request goes where its head or default say
    # An entry of the targets that all models have in common by their accounts; None: there are none.
    cdef ModelEntry common(self)
    # The body with the models as a target's provider knows them.
    cdef bytes renamed(self, RequestContext ctx, LlmCall call, LlmTarget target)

# Looks for the models of a batch; an answer for one that names none. Sets call.requested to the first where neither head
# nor ids say where the request goes.
cdef Reply read_batch(RequestContext ctx, LlmCall call, bytes path)
# The batch that read_batch() found in this request, None for any other.
cdef BatchModels batch_of(RequestContext ctx)
# Whether the target's provider takes batches as clients of Messages send them.
cdef bint takes_batches(LlmTarget target, str model) except -1
