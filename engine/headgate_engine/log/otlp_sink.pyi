from collections.abc import Callable

from headgate_engine.shared.counters import Counter

BATCH_COUNT: int
BATCH_BYTES: int
BATCHES: int

class OtlpSink:
    """Spans and log records on their way to an exporter. At most BATCHES batches of BATCH_BYTES bytes or BATCH_COUNT
    wait; what comes beyond that is dropped and counted.

    wake: called with False when something waits, with True when a whole batch does.
    """

    wake: Callable[[bool], None] | None
    def __init__(self, dropped: Counter | None = None) -> None: ...
    @property
    def count(self) -> int: ...
    def put(self, content: bytes, n: int = 1) -> None:
        """Add something that is encoded already. For tests."""

    def take(self) -> tuple[bytes, int] | None:
        """Return the oldest batch and how many it has; None: nothing waits."""

    def lose(self, n: int) -> None:
        """Count `n` that could not be sent as dropped."""
