"""Plans: the compiled configuration that the request path reads."""

from libc.stdlib cimport free, malloc

from headgate_engine.http1.receiver cimport ReceiverLimits
from headgate_engine.http2.limits cimport Http2Limits
from headgate_engine.context.random cimport random_below

from libc.stdint cimport int64_t, uint64_t


# What connections of HTTP/2 are allowed where nothing else is said.
USUAL = Http2Limits(max_window=262144)


cdef class ResponseHold:
    """A response body is read whole before its head is sent on.

    limit: most bytes that are read. strict: refuse a larger body; otherwise it is passed on and steps do not see it.
    usage_only: hold only whole responses of models. prefix: steps see the first `limit` bytes of a larger one.
    """

    def __init__(self, int64_t limit, bint strict=False, bint usage_only=False, bint prefix=False):
        if limit < 0:
            raise ValueError("the limit is negative")
        self.limit = limit
        self.strict = strict
        self.usage_only = usage_only
        self.prefix = prefix


cdef class Destination:
    def __cinit__(self):
        if type(self) is Destination:
            raise TypeError("Destination has no instances of its own: see link.backend")


cdef class RouteGroup:
    """Routes that a route hands requests on to."""

    def __init__(self, str name not None):
        self.name = name


cdef class Delegation:
    cdef list names(self):
        return [f"{(<RoutePlan>rule.target).namespace}/{(<RoutePlan>rule.target).name}" for rule in self.rules]


cdef class BackendPlan:
    def __init__(self, str name, str protocol, Destination destination not None):
        self.name = name
        self.protocol = protocol
        self.destination = destination
        self.request_steps = ()
        self.response_steps = ()
        self.response_transforms = ()
        self.final_steps = ()
        self.max_body = 2 * 1024 * 1024


cdef class MeteredPlan:
    def __cinit__(self):
        self.token = object()


cdef class RoutePlan(MeteredPlan):
    def __cinit__(self):
        self.cumulative = NULL

    def __init__(self, str name, str namespace, str rule_name, tuple backends, tuple weights):
        cdef Py_ssize_t index
        cdef uint64_t total = 0
        if len(backends) != len(weights):
            raise ValueError("one weight per backend")
        self.name = name
        self.namespace = namespace
        self.rule_name = rule_name
        self.backends = backends
        self.request_steps = ()
        self.response_steps = ()
        self.response_transforms = ()
        if backends:
            self.cumulative = <uint64_t*>malloc(len(backends) * sizeof(uint64_t))
            if self.cumulative == NULL:
                raise MemoryError()
            for index in range(len(backends)):
                if weights[index] < 0:
                    raise ValueError("weights are not negative")
                total += weights[index]
                self.cumulative[index] = total
        self.total_weight = total
        self.delegates = any([isinstance(plan, BackendPlan) and (<BackendPlan>plan).group is not None for plan in backends])

    def __dealloc__(self):
        free(self.cumulative)

    cdef BackendPlan choose(self):
        """Weighted random choice of a backend, None if all weights are zero or there is none."""
        cdef Py_ssize_t index = 0
        cdef uint64_t ticket
        if self.total_weight == 0:
            return None
        if len(self.backends) > 1:
            ticket = random_below(self.total_weight)
            while self.cumulative[index] <= ticket:
                index += 1
        return <BackendPlan>self.backends[index]

    def pick(self):
        """Weighted random choice of a backend, None if all weights are zero or there is none. For tests."""
        return self.choose()


cdef class ListenerPlan(MeteredPlan):
    def __init__(self, str name, str gateway, str gateway_namespace, routes):
        self.name = name
        self.gateway = gateway
        self.gateway_namespace = gateway_namespace
        self.routes = routes
        self.request_steps = ()
        self.response_steps = ()
        self.response_transforms = ()


cdef class BindPlan(MeteredPlan):
    def __init__(self, str key, ReceiverLimits limits):
        self.key = key
        self.limits = limits
        self.http2 = USUAL
        self.protocol = "http/1.1"
        self.idle_timeout_ns = 600 * 1000000000
        self.head_timeout_ns = 60 * 1000000000
        self.body_timeout_ns = 60 * 1000000000
        self.lower_case = True


cdef class BindSlot:
    def __init__(self, str key, BindPlan plan):
        self.key = key
        self.plan = plan
