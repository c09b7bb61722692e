# The compiled configuration: immutable objects that the request path reads. A reload builds new ones and swaps the plan
# of each BindSlot; a request in flight keeps the plans with which it started.

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.http1.receiver cimport ReceiverLimits
from headgate_engine.http2.limits cimport Http2Limits
from headgate_engine.plan.retry cimport RetryPlan

from libc.stdint cimport int64_t, uint64_t

cdef class Destination:
    # The target of a plan's requests. Its only subclass is the interface link.backend.Backend.
    pass

cdef class ResponseHold:
    # A response body is read whole before its head is sent on, up to `limit` bytes. `strict`: a larger one is refused;
    # otherwise it is passed on, and steps do not see it.
    cdef readonly int64_t limit
    cdef readonly bint strict
    # The hold serves the tokens and the cost of a model's response, known at its end. Event streams are never held.
    cdef readonly bint usage_only
    # Steps want to see the beginning of a longer one, `limit` bytes of it, before it is passed on.
    cdef readonly bint prefix

cdef class RouteGroup:
    # Routes that a route hands requests on to. A reload replaces the table; the group stays while the delegation does.
    cdef readonly str name
    cdef public object routes                # route.table.RouteTable; None: there is no group of this name
    cdef public bint protected               # who may use one of its routes is asked by a policy of that

cdef class BackendPlan:
    cdef readonly Destination destination    # link.backend.Backend: host, LLM, handler ...
    cdef readonly str name                   # label and log value
    cdef readonly str protocol               # http, llm, mcp
    cdef public object pool                  # link.pool.Pool (host, llm provider)
    cdef public object tcp_pool              # link.pool.Pool of tunnels (host); None: there are none to it
    cdef public object endpoints             # link.endpoints.EndpointSet; None: use `pool`
    cdef public bytes authority              # automatic authority rewrite; None keeps the client's
    cdef public tuple request_steps          # Step, once per attempt
    cdef public tuple response_steps
    cdef public tuple response_transforms    # run after all response_steps; may need the body
    cdef public ResponseHold hold            # None: the response is streamed
    cdef public int64_t request_timeout_ns   # until response headers; 0: the route decides
    cdef public tuple final_steps            # of a model: run on the final request to the provider (signatures)
    cdef public int64_t first_event_ns       # of a model: from the attempt to its stream's first event; 0: unlimited
    cdef public int64_t first_words_ns       # of a model: how long events without words are kept back; 0: not at all
    cdef public int64_t stall_ns             # of a model: the longest pause within a response; 0: unlimited
    cdef public int64_t max_body             # bytes buffered before dispatch (LLM, handler)
    cdef public RouteGroup group             # matching goes on there, and nothing is dispatched; None: this is a backend
    cdef public object origin                # its configuration, for the trace; None: not shown

cdef class Delegation:
    # How a request has come to its route through those that have delegated to it.
    cdef list rules                          # route.table.RouteRule that matched in each of them, outermost first
    cdef BackendPlan entry                   # the choice of a route that may delegate and did not; None: nothing chosen yet
    # `namespace/name` of each of them, outermost first.
    cdef list names(self)

cdef class MeteredPlan:
    # Caches the counters of requests, made when the first request of a kind ends (log.meter). They live as long as the
    # plan and hold no reference cycle to it.
    cdef object meters                       # log.meter.PlanMeter, the first of a chain; None: nothing counted yet
    cdef object token                        # identifies this plan in objects that must not keep it alive
    # Metric labels of this plan, with the tokens of the port and the listener for which they are valid.
    cdef object labels_bind, labels_listener
    cdef str labels

cdef class RoutePlan(MeteredPlan):
    cdef readonly str name, namespace, rule_name
    cdef public tuple request_steps
    cdef public tuple response_steps
    cdef public tuple response_transforms
    cdef public ResponseHold hold
    cdef public bint protected               # who may use it is asked by a policy of the route
    cdef public bint delegates               # some of `backends` are groups of routes
    cdef public bint keep_authority          # no automatic rewrite: the route has set it, or keeps the client's
    cdef public RetryPlan retry              # None: a failed attempt is final
    cdef public int64_t request_timeout_ns, backend_timeout_ns   # 0: none
    cdef public tuple backends               # BackendPlan
    cdef public object origin                # as in BackendPlan
    cdef uint64_t* cumulative                # running sums of weights, one per backend
    cdef uint64_t total_weight
    # The start of this route's log lines, with the listener's token and the format (log.access) for which it is valid.
    cdef object place_listener, place_format
    cdef bytes place
    cdef BackendPlan choose(self)

cdef class ListenerPlan(MeteredPlan):
    cdef readonly str name, gateway, gateway_namespace
    cdef public tuple request_steps          # gateway phase
    cdef public tuple response_steps
    cdef public tuple response_transforms
    cdef public ResponseHold hold
    cdef public object routes                # route.table.RouteTable
    # Of a TCP or TLS listener: route.table.HostTable of RoutePlan by the name in the TLS handshake; None: it speaks HTTP.
    cdef public object tcp
    cdef public object origin                # as in BackendPlan

cdef enum ForwardedBits:
    FORWARDED_X = 1          # x-forwarded-for, -proto, -host
    FORWARDED_RFC = 2        # forwarded (RFC 7239)

cdef enum ConnectMode:
    CONNECT_DENY = 0
    CONNECT_ROUTE = 1        # takes part in routing
    # What is in the tunnel is served by another port of this process, and there is nothing but tunnels.
    CONNECT_TUNNEL = 2

cdef enum RequestIdMode:
    REQUEST_ID_OFF = 0
    REQUEST_ID_GENERATE = 1  # what the client says is replaced
    REQUEST_ID_TRUST = 2     # what the client says is taken over, if it is usable

cdef class BindPlan(MeteredPlan):
    cdef readonly str key
    cdef public str protocol                 # protocol of its connections: a key of link.protocols.SERVERS
    cdef public bint secure                  # connections begin with a TLS handshake
    # plan.step.Step that is run for each connection (link.admission): who may connect; None: everybody.
    cdef public object admission
    # link.proxy_header.ProxyRules: connections begin with a PROXY protocol header; None: they do not.
    cdef public object proxy_rules
    cdef public int connect_mode             # ConnectMode
    cdef public object listeners             # route.table.HostTable of ListenerPlan
    cdef public ListenerPlan sole_listener            # the single listener without a host name, if so
    cdef public ReceiverLimits limits
    cdef public Http2Limits http2
    cdef public int64_t idle_timeout_ns      # keep-alive idle; also bounds a slow head
    cdef public int64_t head_timeout_ns      # from the first byte of a head to its end
    cdef public int64_t body_timeout_ns      # between two reads of a request body, and two writes to a slow reader
    cdef public int64_t max_duration_ns      # of a connection; 0: unlimited
    cdef public int64_t max_requests         # per connection; 0: unlimited
    cdef public int path_mode                # context.paths.PathMode
    cdef public bint keeps_underscores       # request fields with an underscore in their names go on
    cdef public bint lower_case              # field names that HTTP/1.1 sends on, to clients and backends
    cdef public int forwarded                # ForwardedBits
    cdef public int trusted_hops
    cdef public int64_t generation
    cdef public bint untraced               # its requests are not traced: the worker that relays them does that
    cdef public int request_ids             # RequestIdMode
    cdef public object tracing               # log.spans.TracePlan; None: no spans
    cdef public object otlp_log              # log.otlp.OtlpLogPlan; None: no log records over OTLP
    cdef public object access_log            # log.access.AccessLogFormat, None: off
    cdef public object records               # log.records.RecordFormat, None: no request log
    cdef public tuple metric_labels          # (name, expr.program.Program) beside the fixed ones; None: none
    cdef object port_meter                   # log.meter.BindMeter, None: nothing counted yet

cdef class BindSlot:
    # The object that a port's connections refer to. It outlives reloads, its plan does not.
    cdef readonly str key
    cdef public BindPlan plan
