from collections.abc import Iterable

from headgate_engine.plan.step import Step

PICTURES: frozenset[str]

def shows_pictures(body: bytes) -> bool:
    """Whether a request of chat completions, Messages or Responses has pictures, those of tools' results among them."""

class ProviderStep(Step):
    """Moves the value of `authorization: Bearer` to another field, as an LLM provider wants it.

    header: the field, None moves nothing. starting: only values that begin so are moved; sparing: those that begin so
    stay, and the client's field of that name goes. formats: only when the provider is asked in one of them. missing:
    fields added where the request has none. pictured: the same, for requests with pictures.
    """

    def __init__(
        self,
        header: str | None = None,
        *,
        starting: str = "",
        sparing: str = "",
        formats: Iterable[str] | None = None,
        missing: Iterable[tuple[str, str]] = (),
        pictured: Iterable[tuple[str, str]] = (),
    ) -> None: ...
