from collections.abc import Iterable

from headgate_engine.context.request import Reply
from headgate_engine.llm.content_capture import CaptureOptions
from headgate_engine.llm.formats import DEFAULT_ROUTES as DEFAULT_ROUTES
from headgate_engine.llm.formats import RouteMap
from headgate_engine.llm.prices import PriceList
from headgate_engine.llm.public import PublicModel
from headgate_engine.llm.resources import Resources
from headgate_engine.llm.target import ModelEntry, VirtualEntry
from headgate_engine.plan.retry import RetryPlan

MAX_DECODED: int
BEDROCK: bytes
INJECTED: bytes
STREAM_IN_BODY: frozenset[str]
LOOSE: frozenset[str]
COUNTING: frozenset[str]
BY_BODY: frozenset[str]
RAW_PREDICT: frozenset[bytes]
BY_PATH: frozenset[str]
BODY_TOO_LONG: Reply


class LlmChoice:
    """C face only: the outcome of a choice."""

class ModelRouter:
    """models: PublicModel in the order they are tried. sole_entry: takes every request whatever its model (`ai`).

    routes: path suffix -> format, beside DEFAULT_ROUTES. failover: what is tried at the other providers of a model.
    created: Unix time for the model list.
    """

    def __init__(
        self,
        models: Iterable[PublicModel] = ...,
        virtual: Iterable[VirtualEntry] = ...,
        *,
        routes: dict[str, str] | None = None,
        sole_entry: ModelEntry | None = None,
        failover: RetryPlan | None = None,
        created: float | None = None,
    ) -> None: ...
    prices: PriceList | None
    log_payload: bool
    wanted: CaptureOptions | None
    max_body: int
    resources: Resources | None
    @property
    def models(self) -> tuple[PublicModel, ...]: ...
    @property
    def virtual(self) -> dict[bytes, VirtualEntry]: ...
    @property
    def routes(self) -> RouteMap: ...
    @property
    def sole_entry(self) -> ModelEntry | None: ...
    @property
    def failover(self) -> RetryPlan | None: ...
    @property
    def allows_unknown(self) -> bool:
        """Whether `*` of `routes` is configured, so that guarded models take paths that no suffix names."""
    @property
    def open_paths(self) -> bool:
        """Whether a model says what becomes of paths that no suffix names."""
