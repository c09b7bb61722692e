from collections.abc import Iterable, Mapping

from headgate_engine.context.request import Reply
from headgate_engine.llm.pattern import ModelPattern
from headgate_engine.plan.plans import BackendPlan

COMPLETIONS: str
MODEL_LIST_PATHS: tuple[str, ...]
MAX_DECODED: int
INJECTED: bytes
REASONS: dict[int, str]

def refusal(status: int, code: str, message: str) -> Reply: ...
def not_found(model: str) -> Reply: ...

class LlmTarget:
    """One entry of `llm.models` and where it leads.

    pattern: a name, or with one `*` at its start or end, or `*`; ValueError otherwise. paths: client path suffix to
    whole provider path; path_override wins over it, path_prefix + rest is used without either.
    """

    def __init__(
        self,
        pattern: str,
        plan: BackendPlan,
        provider: str,
        *,
        path_prefix: str = "",
        path_override: str | None = None,
        paths: Mapping[str, str] = ...,
        pinned: str | None = None,
    ) -> None: ...
    @property
    def pattern(self) -> str: ...
    @property
    def plan(self) -> BackendPlan: ...

class LlmChoice:
    """C face only: the outcome of a choice."""

class ModelRouter:
    """Chooses the first target, in order, whose pattern fits the model of the request."""

    def __init__(self, targets: Iterable[LlmTarget], created: float | None = None) -> None: ...
    @property
    def targets(self) -> tuple[LlmTarget, ...]: ...
    def listing(self, targets: Iterable[LlmTarget]) -> bytes:
        """Return the model list of these targets."""
    def listed_for(self, patterns: tuple[ModelPattern, ...]) -> bytes:
        """Return the model list that the key with these patterns may see."""
