from collections.abc import Callable
from typing import Any

from headgate_engine.context.request import TokenUsage
from headgate_engine.llm.foreign import ForeignHistory
from headgate_engine.llm.prices import Cost

OUTCOMES: tuple[str, ...]
SOURCES: tuple[str, ...]
NS_PER_S: float
PARAM_FIELDS: dict[str, str]

class LlmAttempt:
    """One try at one provider, as it came out; times are CLOCK_MONOTONIC ns, 0 where it never came to that."""

    @property
    def provider(self) -> str: ...
    @property
    def client_format(self) -> str: ...
    @property
    def upstream_format(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def streaming(self) -> bool: ...
    @property
    def status(self) -> int: ...
    @property
    def usage(self) -> TokenUsage | None:
        """By the provider's count, or the estimate of the prompt; `usage_source` says which."""
    @property
    def usage_source(self) -> str: ...
    @property
    def response_model(self) -> str | None: ...
    @property
    def dropped(self) -> tuple[str, ...] | None:
        """Labels of parameters of the request that the provider's format cannot say; None for none."""
    @property
    def price_version(self) -> str | None:
        """The catalogs that it was priced by; None without any, and where there was nothing to price."""
    @property
    def cost(self) -> Cost | None: ...
    def record(self) -> dict[str, Any]:
        """Return all of it as a map, for the trace and the log."""
    @property
    def started_ns(self) -> int: ...
    @property
    def first_event_ns(self) -> int: ...
    @property
    def ended_ns(self) -> int: ...

class LlmCall:
    """One LLM request over all of its attempts. `model` is the provider's name for the model, `translation_state`
    what a translation wants to remember for the answer, `verdicts` what guards said of the request in earlier attempts.
    `dropped`: labels of parameters that the provider's format cannot say, `unsupported`: their names as the value of a
    response header; None where there are none. `translated`: a body and what its translation came to, `adapted`: a body
    and the same in the provider's dialect, `final_document`: a body that goes to the provider and its JSON,
    `prompt_estimate`: the tokens of the body, -1 for not known; all of them are made beside the loop, for long bodies.
    """

    dropped: tuple[str, ...] | None
    unsupported: bytes | None
    translated: tuple[bytes, Any] | None
    adapted: tuple[bytes, bytes] | None
    final_document: tuple[bytes, Any] | None
    prompt_estimate: int
    @property
    def translation(self) -> Any | None:
        """What translates between the client's format and the provider's; None where they are the same."""
    @property
    def history(self) -> ForeignHistory | None:
        """What makes turns of other vendors fit for a provider that speaks the client's format; None: nothing does."""

    @property
    def adapt(self) -> Callable[[bytes, bool], bytes] | None:
        """What makes a body one of the provider's dialect: adapt(body, streaming); None: it has none."""

    @property
    def edits_final(self) -> bool:
        """Whether expressions edit what goes to the provider, in its format."""

    streaming: bool
    model: str
    @property
    def has_include_usage(self) -> bool:
        """Whether the client says itself whether it wants the usage of a stream."""
    @property
    def arrays(self) -> bool:
        """Whether a stream of generateContent is wanted as a JSON array."""

    translation_state: object
    guards: Any
    verdicts: Any
    taken: int
    @property
    def estimated(self) -> int:
        """Prompt tokens by our own estimate, -1 when nobody asked for one."""
    @property
    def format(self) -> str: ...
    @property
    def requested(self) -> bytes | None:
        """The model as the client named it."""
    @property
    def attempts(self) -> list[LlmAttempt]: ...
