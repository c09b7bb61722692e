"""The settings of plain MCP calls; see settings.pxd."""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.client cimport HttpClient
from headgate_engine.link.handler cimport HandlerBackend
from headgate_engine.plan.step cimport AsyncStep, Step

from libc.stdint cimport int64_t


cdef class DirectTarget:
    """The client of a server. The `steps` of its policies run on each call. Raises ValueError for a step that may wait.
    `timeout_ms`: 0 for none.
    """

    def __init__(self, HttpClient client not None, str path not None, *, tuple steps not None=(), int64_t timeout_ms=0):
        for step in steps:
            if not isinstance(step, Step) or isinstance(step, AsyncStep):
                raise ValueError("a step that may have to wait runs in Python")
        MessageHead().set_request("POST", path, client.authority.decode("ascii"))
        self.client = client
        self.path = path.encode("ascii")
        self.steps = steps
        self.timeout_ns = timeout_ms * 1000000


cdef class CallSettings:
    def __init__(self, HandlerBackend handler not None, service not None, bint federated):
        self.handler = handler
        self.service = service
        self.sessions = service.sessions
        self.count = service.count
        self.fields = service.plain_fields
        self.federated = federated
        self.patience_ns = <int64_t>(<double>service.keepalive_s * 1e9)
