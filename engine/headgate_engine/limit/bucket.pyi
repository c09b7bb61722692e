from headgate_engine.shared.segment import Segment

MAX_TOKENS: int

class TokenBucket:
    """A bucket that all processes of a replica share. Its numbers are part of its identity.

    It starts full. After k whole intervals since creation, k * tokens_per_fill tokens have been added, capped at
    max_tokens at each tick; nothing is added inside an interval. A key that exists with the same numbers keeps its
    level and ticks; with other numbers it is another bucket.

    key: any bytes. max_tokens: 0..2^53. tokens_per_fill: 0..max_tokens. fill_interval_ns: 1 or more. created_ns:
    CLOCK_MONOTONIC, now by default. Raises ValueError for other numbers, SegmentFull if there is no room (a shared
    overflow bucket would limit unrelated clients).
    """

    def __init__(
        self,
        segment: Segment,
        key: bytes,
        max_tokens: int,
        tokens_per_fill: int,
        fill_interval_ns: int,
        created_ns: int | None = ...,
    ) -> None: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def tokens_per_fill(self) -> int: ...
    @property
    def fill_interval_ns(self) -> int: ...
    def take_at(self, n: int, now_ns: int) -> tuple[bool, int, int, int]:
        """Take n tokens or none. Return (allowed, limit, remaining, seconds to the next refill, rounded down).

        n below 1 or above max_tokens is refused with reset 0. A refusal has remaining 0.
        """
