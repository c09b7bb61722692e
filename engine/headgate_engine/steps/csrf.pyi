from collections.abc import Iterable

from headgate_engine.context.request import Reply
from headgate_engine.plan.step import Step

SAFE: tuple[bytes, ...]

class CsrfStep(Step):
    """origins: scheme://host[:port] of other sites that may send requests. refused: the reply to all others."""

    def __init__(self, origins: Iterable[str], refused: Reply) -> None: ...
