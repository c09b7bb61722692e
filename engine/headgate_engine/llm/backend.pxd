# The backend of model requests: link/backend for the providers of a model.

from headgate_engine.link.backend cimport Backend
from headgate_engine.llm.router cimport ModelRouter

cdef class LlmBackend(Backend):
    cdef readonly ModelRouter router
