from headgate_engine.context.request import TokenUsage
from headgate_engine.shared.segment import Segment

TOKENS: tuple[int, ...]
MODEL_SECONDS: tuple[float, ...]
PER_TOKEN_SECONDS: tuple[float, ...]
FIRST_TOKEN_SECONDS: tuple[float, ...]
TOKEN_TYPES: tuple[str, ...]
MAX_LABEL: int
MAX_MODELS: int
MAX_ERRORS: int
OTHER_ERROR: str

class ModelMeter:
    """The series of one provider, model and route. labels: those of the series."""

    def __init__(self, segment: Segment, labels: str) -> None: ...
    def count_tokens(self, usage: TokenUsage) -> None:
        """Count input and output tokens if they are known, and cached tokens if there are any."""
    def count_cost(self, picos: int) -> None:
        """Add a cost in picodollars (1e-12 USD)."""
    def count_stream(self, first_ns: int, per_token: int) -> None:
        """Count a stream's first event and its time per token. Both in ns, -1 if unknown."""

class ModelMeters:
    """The metrics of all models of a worker."""

    def __init__(self, segment: Segment | None) -> None: ...
