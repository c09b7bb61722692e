# The backend of model requests: link/backend for the providers of a model.

from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.router cimport ModelRouter

cdef class LlmBackend(Backend):
    cdef readonly ModelRouter router
    # speak(format, reply, limit, remaining, reset_s): an answer of the gateway's own in the client's format.
    cdef readonly object speak
    cdef int _fan_out(self, RoutedRequest request, LlmCall call) except -1
    cdef int _ask(self, RoutedRequest request, list sources) except -1
