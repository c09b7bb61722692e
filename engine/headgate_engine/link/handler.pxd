# Backends written in Python: a task per request runs the handler, which gets whole requests.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.link.worker cimport Worker

cdef class HandlerBackend(Backend):
    cdef readonly Worker worker
    cdef readonly str name
    cdef str task_name
    cdef object handle
