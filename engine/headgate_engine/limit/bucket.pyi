from headgate_engine.shared.segment import Segment

MAX_TOKENS: int

class TokenBucket:
    """A bucket that all processes of a replica share; its numbers are part of its identity.

    Starts full; after k whole intervals since the first use, k * tokens_per_fill are added, up to max_tokens.
    ValueError when tokens_per_fill is above max_tokens or the interval is not positive.
    """

    def __init__(
        self,
        segment: Segment,
        key: bytes,
        max_tokens: int,
        tokens_per_fill: int,
        fill_interval_ns: int,
    ) -> None: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def tokens_per_fill(self) -> int: ...
    @property
    def fill_interval_ns(self) -> int: ...
    def take_at(self, n: int, now_ns: int) -> tuple[bool, int, int, int]:
        """Take n tokens: (allowed, limit, remaining, seconds to the next refill rounded down)."""
    def settle_at(self, n: int, now_ns: int) -> None:
        """Give back (n > 0) or take away (n < 0); the level stays within 0..max_tokens."""
