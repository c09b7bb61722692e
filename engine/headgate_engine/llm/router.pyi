from collections.abc import Iterable

from headgate_engine.context.request import Reply
from headgate_engine.expr.program import Program
from headgate_engine.llm.formats import DEFAULT_ROUTES as DEFAULT_ROUTES
from headgate_engine.llm.formats import RouteMap
from headgate_engine.llm.pattern import ModelPattern
from headgate_engine.llm.target import ModelEntry, VirtualModel
from headgate_engine.plan.retry import RetryPlan

MODEL_LIST_PATHS: tuple[str, ...]
MAX_DECODED: int
INJECTED: bytes
STREAM_IN_BODY: frozenset[str]
LOOSE: frozenset[str]
REASONS: dict[int, str]

def refusal(status: int, code: str, message: str) -> Reply: ...
def not_found(model: str) -> Reply: ...

class PublicModel:
    """pattern: a name, or with one `*` at its start or end, or `*`. conditions: programs of which all must hold."""

    def __init__(self, pattern: str, entry: ModelEntry, conditions: Iterable[Program] = ...) -> None: ...
    @property
    def pattern(self) -> str: ...
    @property
    def entry(self) -> ModelEntry: ...
    @property
    def conditions(self) -> tuple[Program, ...]: ...

class LlmChoice:
    """C face only: the outcome of a choice."""

class ModelRouter:
    """models: PublicModel in the order they are tried. only: takes every request whatever its model (an `ai` backend).

    routes: path suffix -> format. failover: what is tried at the other providers of a model. created: Unix time for the
    model list.
    """

    def __init__(
        self,
        models: Iterable[PublicModel] = ...,
        virtual: Iterable[VirtualModel] = ...,
        *,
        routes: dict[str, str] | None = None,
        only: ModelEntry | None = None,
        failover: RetryPlan | None = None,
        created: float | None = None,
    ) -> None: ...
    @property
    def models(self) -> tuple[PublicModel, ...]: ...
    @property
    def virtual(self) -> dict[bytes, VirtualModel]: ...
    @property
    def routes(self) -> RouteMap: ...
    @property
    def only(self) -> ModelEntry | None: ...
    @property
    def failover(self) -> RetryPlan | None: ...
    def listing(self, patterns: tuple[ModelPattern, ...] | None) -> bytes:
        """Return the model list that a key with these patterns may see; None: all."""
