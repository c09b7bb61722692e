from headgate_engine.context.request import RequestContext, Usage
from headgate_engine.expr.program import Program
from headgate_engine.plan.plans import BindPlan
from headgate_engine.shared.segment import Segment

METHODS: tuple[str, ...]
REQUEST_SECONDS: tuple[float, ...]
TOKENS: tuple[int, ...]
MODEL_SECONDS: tuple[float, ...]
PER_TOKEN_SECONDS: tuple[float, ...]
FIRST_TOKEN_SECONDS: tuple[float, ...]
TOKEN_TYPES: tuple[str, ...]
MAX_MODELS: int

class PlanMeter:
    """C face only."""

class BindMeter:
    """The series of one port."""

    def __init__(self, segment: Segment, labels: str) -> None: ...

class ModelMeter:
    """The series of one provider, model and route: `labels` are theirs."""

    def __init__(self, segment: Segment, labels: str) -> None: ...
    def count_tokens(self, usage: Usage) -> None: ...
    def count_cost(self, picos: int) -> None: ...
    def count_stream(self, first_ns: int, per_token: int) -> None:
        """Count a stream's first event and the time of one token, in ns; -1 where that is not known."""

class RequestMeters:
    """All request metrics of a worker."""

    def __init__(self, segment: Segment | None) -> None: ...

def label(name: str, value: object) -> str: ...

def route_labels(ctx: RequestContext, bind: BindPlan) -> str:
    """Return the labels that tell where a request was taken to, and what the configuration adds to them."""

MAX_LABEL: int

def label_value(program: Program, ctx: RequestContext) -> str:
    """Return the text of a configured label; `unknown` when the expression fails or has no value."""
