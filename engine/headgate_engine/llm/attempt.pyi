from typing import Any

from headgate_engine.context.request import Usage

OUTCOMES: tuple[str, ...]

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
    def usage(self) -> Usage | None: ...
    @property
    def started_ns(self) -> int: ...
    @property
    def first_event_ns(self) -> int: ...
    @property
    def ended_ns(self) -> int: ...

class LlmCall:
    """One LLM request over all of its attempts. `model` is the provider's name for the model, `asked` what a
    translation wants to remember for the answer, `verdicts` what guards said of the request in earlier attempts.
    """

    streaming: bool
    model: str
    asked: object
    guards: Any
    verdicts: Any
    @property
    def format(self) -> str: ...
    @property
    def requested(self) -> bytes | None:
        """The model as the client named it."""
    @property
    def attempts(self) -> list[LlmAttempt]: ...
