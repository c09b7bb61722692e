from headgate_engine.llm.translate.counts import PARTS as PARTS
from headgate_engine.llm.translate.counts import UsageCounts

class OpenTool:
    """C face only: one tool call of the reply."""

class Writer:
    """The client's half of one stream; what a reader (readers.pyi) is given.

    ident: hex digits that ids of this reply are made of where the provider gives none. model: told when the provider
    names none. created: Unix time. names: tool names as the provider knows them to those of the client. extra: see the
    formats. take() returns what was written since the last call.
    """

    def __init__(
        self, ident: str, model: str, created: int, names: dict[str, str], extra: dict[str, object]
    ) -> None: ...
    probs_wanted: bool
    customs: frozenset[str] | None
    """Names of the client's custom tools, of which its format tells calls of their own kind."""
    untold: bool
    @property
    def started(self) -> bool: ...
    @property
    def finished(self) -> bool:
        """Whether the terminal event was written."""
    @property
    def usage(self) -> UsageCounts | None: ...
    @property
    def fault_message(self) -> str | None:
        """What the client was told when the stream broke."""
    @property
    def fault_kind(self) -> str | None:
        """The provider's own word for the fault that it told; None for one that the gateway saw."""
    @property
    def fault_code(self) -> str | None: ...
    @property
    def fault_status(self) -> int:
        """The HTTP status that the provider's fault means; 0 without one."""
    @property
    def spoke(self) -> bool:
        """Whether more was written than that the stream has begun."""
    service_tier: str | None
    @property
    def answered(self) -> str | None:
        """The model that the provider named."""
    def take(self) -> bytes: ...

class CompletionsWriter(Writer):
    """chat.completion.chunk events.

    extra: `include_usage`, whether the client asked for the usage chunk; `sound_of(media_type, data)`, which returns
    sound as the client wants it, or None where it cannot be made so.
    """

def responses_usage_of(usage: UsageCounts) -> dict[str, object]:
    """Return `usage` of a response object."""

def completions_usage_of(usage: UsageCounts) -> dict[str, object]:
    """Return `usage` of a chat completion."""

def messages_usage_of(usage: UsageCounts) -> dict[str, object]:
    """Return `usage` of a message: input_tokens without what caches hold."""

def dump_json(value: object) -> bytes:
    """Return compact JSON; half a surrogate pair stays an escape. ValueError or RecursionError for what is no JSON."""
