from collections.abc import Callable

from headgate_engine.llm.translate.stops import TIERS_FOR_MESSAGES as TIERS_FOR_MESSAGES
from headgate_engine.llm.translate.writers import Writer

class BlockWriter(Writer):
    """C face only: formats whose replies are a list of blocks."""

class MessagesWriter(BlockWriter):
    """Events of the Messages API. extra: none."""

class ResponsesWriter(BlockWriter):
    """Events of the Responses API. extra: what the response object repeats of the request.

    seal(signature, redacted=False): how signatures of thoughts are told; None: they are not.
    """

    seal: Callable[..., str] | None
