from collections.abc import Callable, Sequence
from typing import Any

from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program

class KeptValue: ...

class KeyedValues:
    """A table of at most `most` values. The least recently used one is dropped first.

    programs: what makes the key of a request. clock: monotonic seconds.
    """

    def __init__(self, programs: Sequence[Program], most: int, clock: Callable[[], float] | None = None) -> None: ...
    def __len__(self) -> int: ...
    def key(self, ctx: RequestContext) -> tuple[object, ...] | None:
        """Return the key of a request, None if it has none: an expression fails or gives no scalar."""

    def get(self, key: tuple[object, ...]) -> Any:
        """Return a value that is still good. None: the caller makes one, and stores it."""

    def held(self, key: tuple[object, ...]) -> Any:
        """Return a value that is still good, for one that could not renew it; None: there is none."""

    def keep(self, key: tuple[object, ...], value: object, seconds: float, margin: float) -> None:
        """Store a value for so many seconds. In the last `margin` of them, one request renews it."""

    def drop(self, key: tuple[object, ...]) -> None:
        """Forget a value, if there is one."""
