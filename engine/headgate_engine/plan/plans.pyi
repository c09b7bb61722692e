from headgate_engine.expr.program import Program
from headgate_engine.http1.receiver import ReceiverLimits
from headgate_engine.http2.limits import Http2Limits
from headgate_engine.link.endpoints import EndpointSet
from headgate_engine.link.pool import Pool
from headgate_engine.link.proxy_header import ProxyRules
from headgate_engine.log.access import AccessLogFormat
from headgate_engine.log.otlp_log import OtlpLogPlan
from headgate_engine.log.records import RecordFormat
from headgate_engine.log.spans import TracePlan
from headgate_engine.plan.retry import RetryPlan
from headgate_engine.plan.step import Step
from headgate_engine.route.table import HostTable, RouteTable

USUAL: Http2Limits

class ResponseHold:
    """A response body is read whole before its head is sent on.

    limit: most bytes that are read. strict: refuse a larger body; otherwise it is passed on and steps do not see it.
    usage_only: hold only whole responses of models. prefix: steps see the first `limit` bytes of a larger one.
    """

    def __init__(
        self, limit: int, strict: bool = False, usage_only: bool = False, prefix: bool = False
    ) -> None: ...
    @property
    def limit(self) -> int: ...
    @property
    def strict(self) -> bool: ...
    @property
    def usage_only(self) -> bool: ...
    @property
    def prefix(self) -> bool: ...

class Destination:
    """The target of a plan's requests. Only its subclass link.backend.Backend has instances."""

class RouteGroup:
    """Routes that a route hands requests on to. routes: None where there is no group of this name. protected: a policy
    of one of them, or of one that they delegate to, asks who may use it.
    """

    routes: RouteTable | None
    protected: bool
    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...

class Delegation:
    """How a request has come to its route through those that have delegated to it."""

class BackendPlan:
    """One backend with the steps of an attempt. Times in ns, 0 is unlimited."""

    pool: Pool
    tcp_pool: Pool | None
    endpoints: EndpointSet | None
    authority: bytes | None
    request_steps: tuple[Step, ...]
    response_steps: tuple[Step, ...]
    response_transforms: tuple[Step, ...]
    hold: ResponseHold | None
    request_timeout_ns: int
    final_steps: tuple[Step, ...]
    first_event_ns: int
    first_words_ns: int
    stall_ns: int
    max_body: int
    group: RouteGroup | None
    origin: object | None
    def __init__(self, name: str, protocol: str, destination: Destination) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def protocol(self) -> str: ...
    @property
    def destination(self) -> Destination: ...

class MeteredPlan:
    """A plan that caches the counters of its requests."""

class RoutePlan(MeteredPlan):
    """One route: steps, time-outs in ns (0 is unlimited), weighted backends."""

    protected: bool
    delegates: bool
    keep_authority: bool
    retry: RetryPlan | None
    request_steps: tuple[Step, ...]
    response_steps: tuple[Step, ...]
    response_transforms: tuple[Step, ...]
    hold: ResponseHold | None
    request_timeout_ns: int
    backend_timeout_ns: int
    backends: tuple[BackendPlan, ...]
    origin: object | None
    def __init__(
        self,
        name: str,
        namespace: str,
        rule_name: str,
        backends: tuple[BackendPlan, ...],
        weights: tuple[int, ...],
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def rule_name(self) -> str: ...
    def pick(self) -> BackendPlan | None:
        """Weighted random choice of a backend, None if all weights are zero or there is none. For tests."""

class ListenerPlan(MeteredPlan):
    """One listener: gateway-phase steps and the route table."""

    request_steps: tuple[Step, ...]
    response_steps: tuple[Step, ...]
    response_transforms: tuple[Step, ...]
    hold: ResponseHold | None
    routes: RouteTable
    tcp: HostTable | None
    origin: object | None
    def __init__(self, name: str, gateway: str, gateway_namespace: str, routes: RouteTable) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def gateway(self) -> str: ...
    @property
    def gateway_namespace(self) -> str: ...

class BindPlan(MeteredPlan):
    """One port. Times in ns (0 is unlimited where it is allowed), max_requests per connection (0 is unlimited).

    protocol: the protocol of its connections, a key of link.protocols.SERVERS; `http/1.1` by default.
    """

    protocol: str
    secure: bool
    admission: Step | None
    proxy_rules: ProxyRules | None
    connect_mode: int
    listeners: HostTable
    sole_listener: ListenerPlan
    limits: ReceiverLimits
    http2: Http2Limits
    idle_timeout_ns: int
    head_timeout_ns: int
    body_timeout_ns: int
    max_duration_ns: int
    max_requests: int
    path_mode: int
    keeps_underscores: bool
    lower_case: bool
    forwarded: int
    trusted_hops: int
    generation: int
    untraced: bool
    request_ids: int
    tracing: TracePlan | None
    otlp_log: OtlpLogPlan | None
    access_log: AccessLogFormat | None
    records: RecordFormat | None
    metric_labels: tuple[tuple[str, Program], ...] | None
    def __init__(self, key: str, limits: ReceiverLimits) -> None: ...
    @property
    def key(self) -> str: ...

class BindSlot:
    """The object that a port's connections refer to. It outlives reloads, its plan does not."""

    plan: BindPlan
    def __init__(self, key: str, plan: BindPlan) -> None: ...
    @property
    def key(self) -> str: ...
