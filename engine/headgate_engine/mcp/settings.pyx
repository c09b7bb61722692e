"""The settings of plain MCP calls; see settings.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.client cimport HttpClient
from headgate_engine.link.handler cimport HandlerBackend
from headgate_engine.mcp.meter cimport McpTargetMeter
from headgate_engine.plan.step cimport AsyncStep, Step

from libc.stdint cimport int64_t


cdef class DirectTarget:
    """The client of a server. The `steps` of its policies run on each call. Raises ValueError for a step that may wait.
    `timeout_ms`: 0 for none.
    """

    def __init__(self, HttpClient client not None, str path not None, *, tuple steps not None=(), int64_t timeout_ms=0,
                 McpTargetMeter meter=None):
        for step in steps:
            if not isinstance(step, Step) or isinstance(step, AsyncStep):
                raise ValueError("a step that may have to wait runs in Python")
        MessageHead().set_request("POST", path, client.authority.decode("ascii"))
        self.client = client
        self.path = path.encode("ascii")
        self.steps = steps
        self.timeout_ns = timeout_ms * 1000000
        self.meter = meter

    cdef int count_call(self, str method, int64_t started_ns, bytes answer) except -1:
        cdef McpTargetMeter meter = self.meter
        return 0 if meter is None else meter.answered(monotonic_ns() - started_ns, method, answer)

    cdef int count_unanswered(self, int64_t started_ns, str reason, bint broken) except -1:
        cdef McpTargetMeter meter = self.meter
        cdef int64_t took_ns = monotonic_ns() - started_ns
        if meter is None:
            return 0
        return meter.failed(took_ns, reason) if broken else meter.refused_with(took_ns, reason)


cdef class CallSettings:
    def __init__(self, HandlerBackend handler not None, service not None, bint federated):
        self.handler = handler
        self.service = service
        self.sessions = service.sessions
        self.count = service.count
        self.fields = service.plain_fields
        self.federated = federated
        self.patience_ns = <int64_t>(<double>service.keepalive_s * 1e9)
