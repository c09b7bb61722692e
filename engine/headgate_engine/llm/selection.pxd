# Which of the configured models serves a request, once its model is known.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.resources cimport Resources
from headgate_engine.llm.target cimport LlmTarget

cdef Reply DENIED
cdef Reply not_found(str model)
# model: None where the request names none.
cdef Reply not_allowed(RequestContext ctx, bytes model)
# Whether the request is for a model of Bedrock in that model's own words, and the target another provider.
cdef bint invokes_elsewhere(RequestContext ctx, LlmCall call, LlmTarget target) except -1
# The answer for a format that the target's provider cannot be asked in.
cdef Reply unsupported(RequestContext ctx, LlmCall call, LlmTarget target)
# Sets call.entry to the first of the models (llm.public.PublicModel) whose fields and rules hold; named: whose name fits, too.
cdef Reply first_model(RequestContext ctx, LlmCall call, tuple models, bint named)
# The same for a request with ids: of the targets only those of the account that they belong to.
cdef Reply bound_model(RequestContext ctx, LlmCall call, tuple models, dict virtual)
# The same for one that names no model: any that the request may use and that leads to the account.
cdef Reply bound_anywhere(RequestContext ctx, LlmCall call, tuple models, dict virtual, Resources resources)
