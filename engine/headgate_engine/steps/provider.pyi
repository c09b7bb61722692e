from collections.abc import Iterable

from headgate_engine.plan.step import Step

PICTURES: frozenset[str]

def shows_pictures(body: bytes) -> bool:
    """Return whether a request of chat completions, Messages or Responses has pictures, also in tool results."""

class ProviderStep(Step):
    """Moves the value of `authorization: Bearer` to the field that an LLM provider needs.

    header: the field, None moves nothing. starting: move only values with this prefix. sparing: leave values with this
    prefix, and remove the client's field of that name. only: for requests to the provider in one of these formats, and
    not for paths with this in them. missing: fields that are added if the request does not have
    them. pictured: the same, for requests with pictures.
    """

    def __init__(
        self,
        header: str | None = None,
        *,
        starting: str = "",
        sparing: str = "",
        only: tuple[Iterable[str] | None, str | None] = (None, None),
        missing: Iterable[tuple[str, str]] = (),
        pictured: Iterable[tuple[str, str]] = (),
    ) -> None: ...

class SubprotocolKeyStep(Step):
    """Removes keys that clients of realtime conversations send as one of their subprotocols, as browsers must."""
