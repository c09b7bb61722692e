from collections.abc import Iterable

from headgate_engine.llm.formats import BEDROCK_VERBS as BEDROCK_VERBS
from headgate_engine.llm.formats import GOOGLE_VERBS as GOOGLE_VERBS
from headgate_engine.llm.target import ModelEntry
from headgate_engine.route.conditions import ValuePredicate
from headgate_engine.steps.authorization import AuthorizationStep

MODEL_LIST_PATHS: tuple[str, ...]
GATEWAY: str
METHODS: tuple[str, ...]

class HeaderMatches:
    """entries: lists of (name, 'exact' | 'regex', text); one entry must hold, and it holds when all in it do.

    A name may be one of the pseudo-headers of routes. ValueError for what cannot be compiled.
    """

    def __init__(self, entries: Iterable[Iterable[tuple[str, str, str]]]) -> None: ...
    @property
    def entries(self) -> tuple[tuple[ValuePredicate, ...], ...]: ...

class PublicModel:
    """pattern: a name, or with one `*` at its start or end, or `*`. matches, rules: None asks nothing.

    source: knows the ids that a pattern stands for: `ids`, `due`, `refresh()`.
    """

    def __init__(
        self,
        pattern: str,
        entry: ModelEntry,
        *,
        matches: HeaderMatches | None = ...,
        rules: AuthorizationStep | None = ...,
        source: object | None = ...,
    ) -> None: ...
    @property
    def source(self) -> object | None: ...
    @property
    def pattern(self) -> str: ...
    @property
    def entry(self) -> ModelEntry: ...
    @property
    def matches(self) -> HeaderMatches | None: ...
    @property
    def rules(self) -> AuthorizationStep | None: ...
    @property
    def reads_body(self) -> bool:
        """Whether the rules ask what the body says (`llmRequest`)."""
