# Which provider gets an LLM request: finds format and model, picks a target, edits the body in place by offsets, points
# the request at the provider. Everything that is not edited stays byte for byte.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.endpoints cimport EndpointState
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.formats cimport RouteMap
from headgate_engine.llm.prices cimport PriceList
from headgate_engine.llm.resources cimport Resources
from headgate_engine.llm.target cimport LlmTarget, ModelEntry
from headgate_engine.peek.json cimport ChatPeek
from headgate_engine.plan.plans cimport BackendPlan
from headgate_engine.plan.retry cimport RetryPlan
from headgate_engine.plan.tap cimport ResponseTap

from libc.stdint cimport int64_t

cdef class LlmChoice:
    cdef Reply reply                     # refused, or answered here (model list)
    cdef BackendPlan plan
    cdef object pool                     # link.pool.Pool
    cdef ResponseTap tap
    cdef EndpointState endpoint               # None: its health is not watched
    cdef list waits                      # sources of model ids that have to be asked before the list is told; None: none
    cdef int spare                       # other targets that may be tried

cdef class ModelRouter:
    cdef readonly tuple models           # PublicModel, in the order they are tried
    cdef readonly dict virtual           # name (bytes) -> VirtualModel
    cdef readonly RouteMap routes
    cdef readonly RetryPlan failover     # other providers, where the route says nothing about retries; None: nowhere
    cdef readonly ModelEntry sole_entry        # whatever the model: an `ai` backend. None: models decide
    cdef public PriceList prices         # None: no catalog is configured
    cdef public bint log_payload               # the request log wants prompts and answers
    cdef public object wanted            # llm.content_capture.Wanted: what expressions want to know; None: nothing
    cdef public Resources resources      # what clients keep at providers; None: an `ai` backend
    cdef public Py_ssize_t max_body      # bytes that a coded body may have when it is read
    cdef bytes model_list                # what everybody sees; None: rules decide
    cdef readonly bint allows_unknown    # a configured route says what becomes of paths that no suffix names
    cdef readonly bint open_paths        # a model says what becomes of paths that no suffix names
    cdef int64_t created                 # Unix time
    cdef ChatPeek peek
    cdef LlmChoice choose(self, RequestContext ctx)
    # The format of a client whose request was not read, by its path and head.
    cdef str format_of(self, RequestContext ctx)
    cdef Reply _read(self, RequestContext ctx, LlmCall call, bytes path)
    cdef Reply _models(self, RequestContext ctx, bytes path)
    cdef Reply _select(self, RequestContext ctx, LlmCall call)
    cdef Reply _select_one(self, RequestContext ctx, LlmCall call)
    cdef Reply _aside(self, RequestContext ctx, LlmCall call, bytes path)
    # Whether the body of the request may go on unread: it is longer than `most`, and the head says where it goes.
    cdef bint passes_unread(self, RequestContext ctx, Py_ssize_t most) except -1
    cdef Reply _edit(self, RequestContext ctx, LlmCall call, LlmTarget target, bytes body)
    cdef int _point(self, RequestContext ctx, LlmCall call, LlmTarget target) except -1
    cdef bint _stays_loose(self, RequestContext ctx) except -1

# Puts the request into the provider's format; a Reply refuses it. Runs behind the steps of the target's plan.
cdef Reply render(RequestContext ctx)
