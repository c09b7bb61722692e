from headgate_engine.context.request import RequestContext, TokenUsage
from headgate_engine.expr.program import Program
from headgate_engine.plan.plans import BindPlan
from headgate_engine.shared.segment import Segment

METHODS: tuple[str, ...]
HANDSHAKE_SECONDS: tuple[float, ...]
PROCESSING_SECONDS: tuple[float, ...]
REQUEST_SECONDS: tuple[float, ...]
CALL_SECONDS: tuple[float, ...]
SUBTYPES: dict[str, str]
TOKENS: tuple[int, ...]
MODEL_SECONDS: tuple[float, ...]
PER_TOKEN_SECONDS: tuple[float, ...]
FIRST_TOKEN_SECONDS: tuple[float, ...]
TOKEN_TYPES: tuple[str, ...]
MAX_MODELS: int

class PlanMeter:
    """The series of one combination of labels. Only C code uses it."""

class BindMeter:
    """The series of one port."""

    def __init__(self, segment: Segment, labels: str) -> None: ...

class ProcessingMeter:
    """What the gateway itself takes for requests to one backend of one route. labels: those of the series."""

    def __init__(self, segment: Segment, labels: str) -> None: ...

class ModelMeter:
    """The series of one provider, model and route. labels: those of the series."""

    def __init__(self, segment: Segment, labels: str) -> None: ...
    def count_tokens(self, usage: TokenUsage) -> None:
        """Count input and output tokens if they are known, and cached tokens if there are any."""
    def count_cost(self, picos: int) -> None:
        """Add a cost in picodollars (1e-12 USD)."""
    def count_stream(self, first_ns: int, per_token: int) -> None:
        """Count a stream's first event and its time per token. Both in ns, -1 if unknown."""

class RequestMeters:
    """All request metrics of a worker."""

    def __init__(self, segment: Segment | None) -> None: ...

def label(name: str, value: object) -> str:
    """Return `name="value"`, escaped (https://prometheus.io/docs/instrumenting/exposition_formats/)."""

def route_labels(ctx: RequestContext, bind: BindPlan) -> str:
    """Return the labels of a request's port, gateway, listener and route, and the configured ones."""

MAX_LABEL: int

def label_value(program: Program, ctx: RequestContext) -> str:
    """Return the value of a configured label, `unknown` if the expression fails or has no value."""
