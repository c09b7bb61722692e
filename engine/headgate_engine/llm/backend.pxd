# The backend of model requests: link/backend for the providers of a model.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.router cimport ModelRouter
from headgate_engine.plan.plans cimport BackendPlan

cdef class LlmBackend(Backend):
    cdef readonly ModelRouter router
    # speak(format, reply, limit, remaining, reset_s): an answer of the gateway's own in the client's format.
    cdef readonly object speak
    cdef int _fan_out(self, RoutedRequest request, LlmCall call) except -1
    # The plan whose steps read a long body first, beside the loop, where that is asked for; None: nothing does.
    cdef public BackendPlan reading
    cdef public Py_ssize_t long_bytes
    cdef public Py_ssize_t coded_bytes         # the same for bodies in a content coding, which are always read
    cdef public Py_ssize_t peek_bytes          # longer ones are read by the reading plan, whatever is asked for; 0: none are
    # Expressions ask what requests say before a provider is chosen, or for its edits.
    cdef readonly bint reads_request
    cdef bint _is_long(self, RequestContext ctx) except -1
    cdef int _choose(self, RoutedRequest request) except -1
    cdef int _ask(self, RoutedRequest request, list sources) except -1
