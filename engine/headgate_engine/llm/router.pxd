# Which provider gets an LLM request: reads the model from the whole body, edits the body in place by offsets, points the
# request at the provider. Everything that is not edited stays byte for byte.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.pattern cimport ModelPattern
from headgate_engine.peek.json cimport ChatPeek
from headgate_engine.plan.plans cimport BackendPlan
from headgate_engine.plan.tap cimport ResponseTap

from libc.stdint cimport int64_t

cdef class LlmTarget:
    # One model entry of the configuration and where it leads.
    cdef readonly str pattern
    cdef ModelPattern names              # the same, ready to match
    cdef readonly BackendPlan plan       # pool, steps, time-out of this model
    cdef bytes provider                  # name in logs and metrics
    cdef bytes path_prefix, path_override
    cdef dict paths                      # client path suffix -> provider path
    cdef bytes pinned                    # JSON string that replaces the client's model

cdef class LlmChoice:
    cdef Reply reply                     # refused, or answered here (model list)
    cdef BackendPlan plan
    cdef ResponseTap tap

cdef class ModelRouter:
    cdef readonly tuple targets          # LlmTarget, in the order they are tried
    cdef bytes model_list
    cdef int64_t created                 # Unix time
    cdef ChatPeek peek
    cdef LlmChoice choose(self, RequestContext ctx)
    cdef int _edit(self, RequestContext ctx, LlmTarget target, bint completions, LlmChoice choice) except -1
    cdef int _point(self, RequestContext ctx, LlmTarget target) except -1
