from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.link.endpoints import EndpointState
from headgate_engine.llm.foreign import ForeignHistory
from headgate_engine.llm.public import HeaderMatches, PublicModel
from headgate_engine.plan.plans import BackendPlan
from headgate_engine.steps.authorization import AuthorizationStep

SAFE: str

class _Path(Protocol):
    """Where a format route leads: `head` + model + `tail` (or `stream_tail`), `head` alone when tail is None, the
    client's path without `strip` behind `prefix` when head is None too. `query` always goes with it; `keep_path`:
    nothing changes.
    """

    @property
    def head(self) -> str | None: ...
    @property
    def tail(self) -> str | None: ...
    @property
    def stream_tail(self) -> str | None: ...
    @property
    def prefix(self) -> str: ...
    @property
    def strip(self) -> str: ...
    @property
    def query(self) -> str: ...
    @property
    def keep_query(self) -> bool: ...
    @property
    def keep_path(self) -> bool: ...

class FormatRoute:
    """One client format at one provider. translation: see headgate.backend.llm.translation; None passes bodies on.

    adapt(body, streaming) makes a provider's dialect of a format; stream_error(message) is the event that tells the
    client that a stream broke; spell(model) is the model as paths have it. pool and
    authority: of another host than the provider's. exclusive: its input counts no cache, whatever the format does
    elsewhere. several: of requests for several choices, which the provider refuses or ignores; None: it does not.
    """

    def __init__(
        self,
        client: str,
        upstream: str,
        *,
        path: _Path,
        translation: object = ...,
        adapt: Callable[[bytes, bool], bytes] | None = ...,
        stream_error: Callable[[str], bytes] | None = ...,
        spell: Callable[[str], str] | None = ...,
        history: ForeignHistory | None = ...,
    ) -> None: ...
    several: FormatRoute | None
    pool: object | None
    authority: bytes | None
    exclusive: bool
    @property
    def client(self) -> str: ...
    @property
    def upstream(self) -> str: ...
    @property
    def translation(self) -> Any: ...
    @property
    def adapt(self) -> Any: ...
    @property
    def history(self) -> ForeignHistory | None:
        """What makes turns of other vendors fit for a provider that speaks the client's format."""
    @property
    def stream_error(self) -> Any: ...
    @property
    def spell(self) -> Any: ...
    @property
    def keep_query(self) -> bool: ...
    @property
    def keep_path(self) -> bool: ...

class LlmEdits:
    """What is changed in bodies. overrides, defaults: JSON values; transformations, final: (field, Program)."""

    def __init__(
        self,
        overrides: Mapping[str, Any] | None = ...,
        defaults: Mapping[str, Any] | None = ...,
        transformations: Iterable[tuple[str, Program]] = ...,
        final: Iterable[tuple[str, Program]] = ...,
        aliases: Mapping[str, str] | Iterable[tuple[str, str]] = ...,
    ) -> None: ...
    @property
    def overrides(self) -> dict[str, bytes]: ...
    @property
    def defaults(self) -> dict[str, bytes]: ...
    @property
    def transformations(self) -> tuple[tuple[str, Program], ...]: ...
    @property
    def final(self) -> tuple[tuple[str, Program], ...]: ...
    @property
    def aliases(self) -> tuple[tuple[Any, str], ...]: ...

class LlmTarget:
    """One provider of one model entry. families: family -> client format -> route; family(model) tells which.

    plan.endpoints, if set, has the one endpoint whose health is watched. own_key: a `key` in the client's query (where
    Gemini's clients may put theirs) does not reach the provider. rest: the format of paths that no suffix names.
    account: names the provider's account in ids of what is kept there.
    max_answer: bytes of an answer that is kept whole, to be translated or guarded.
    added: tokens of the prompts that the gateway adds to requests, by estimate.
    guarded: whether prompts or answers are checked or added to, so that requests in an unknown format are refused.
    rules: who may use it as one of several; matches: what it wants of the head then. slot: of the targets of an entry
    with one number only the first that may be used is; 0: it has none.
    """

    own_key: bool
    rest: str | None
    added: int
    max_answer: int
    account: bytes
    guarded: bool
    rules: AuthorizationStep | None
    matches: HeaderMatches | None
    slot: int

    def __init__(
        self,
        plan: BackendPlan,
        provider: str,
        families: dict[str, dict[str, FormatRoute]],
        *,
        family: Callable[[str], str] | None = ...,
        pinned: str | None = ...,
        edits: LlmEdits | None = ...,
        short_limit: bool = ...,
    ) -> None: ...
    @property
    def plan(self) -> BackendPlan: ...
    @property
    def provider(self) -> bytes: ...
    @property
    def families(self) -> dict[str, dict[str, FormatRoute]]: ...
    @property
    def family(self) -> Any: ...
    @property
    def pinned(self) -> str | None: ...
    @property
    def edits(self) -> LlmEdits | None: ...
    @property
    def endpoint(self) -> EndpointState | None: ...
    @property
    def short_limit(self) -> bool: ...

class LlmGroup:
    """Providers of one priority."""

    def __init__(self, targets: Iterable[LlmTarget]) -> None: ...
    @property
    def targets(self) -> tuple[LlmTarget, ...]: ...

class ModelEntry:
    """A model with its providers; ValueError without any."""

    def __init__(self, name: str, groups: Iterable[LlmGroup], affinity: Program | None = None) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def groups(self) -> tuple[LlmGroup, ...]: ...
    @property
    def affinity(self) -> Program | None:
        """Equal values of it stay at one target of a group."""
    @property
    def affinity_reads(self) -> bool:
        """Whether it asks what the body says."""
    @property
    def size(self) -> int:
        """The number of targets in all groups."""
    @property
    def guarded(self) -> bool:
        """Whether a target has rules or matches."""
    def choose(self, tried: Iterable[LlmTarget] = ..., ctx: RequestContext | None = None) -> LlmTarget: ...

class VirtualEntry:
    """A name that stands for others: by `weights`, or the first whose condition holds (None always does)."""

    def __init__(
        self,
        name: str,
        entries: Iterable[ModelEntry | tuple[PublicModel, ...]],
        *,
        weights: Sequence[int] | None = ...,
        conditions: Sequence[Program | None] | None = ...,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def entries(self) -> tuple[ModelEntry | tuple[PublicModel, ...], ...]: ...
    @property
    def conditions(self) -> tuple[Program | None, ...] | None: ...
    @property
    def sums(self) -> tuple[int, ...]: ...
    def choose(self, ctx: RequestContext | None = ...) -> Any: ...
