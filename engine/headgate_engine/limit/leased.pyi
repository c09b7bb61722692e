from headgate_engine.limit.bucket import TokenBucket
from headgate_engine.shared.segment import Segment

class StoreState:
    """Whether the store can be asked. `local`: without it, each replica limits by itself; else nothing is let pass."""

    def __init__(self, local: bool) -> None: ...
    @property
    def down(self) -> bool: ...
    @property
    def local(self) -> bool: ...
    def set_down(self, down: bool) -> None:
        """Note whether the store can be asked."""

class LeasedBucket(TokenBucket):
    """A bucket in a store that several replicas share, of which this replica spends what it has leased.

    key: of the bucket in the store. numbers: max_tokens, tokens_per_fill and fill_interval_ns. tokens: it counts tokens
    of models. parts: tokens that are leased at once, and what the limit is divided by while there is no store, both 1
    or more. Raises as TokenBucket does.
    """

    def __init__(
        self, segment: Segment, state: StoreState, key: bytes, numbers: tuple[int, int, int], tokens: bool,
        parts: tuple[int, int],
    ) -> None: ...  # fmt: skip
    @property
    def state(self) -> StoreState: ...
    @property
    def alone(self) -> TokenBucket: ...
    @property
    def key(self) -> bytes: ...
    @property
    def tokens(self) -> bool: ...
    @property
    def share(self) -> int: ...
    asking: bool
    active: bool
    def known(self, now_ns: int) -> tuple[int, int, int, int]:
        """Return what the store has to know of its last answer: epoch, number of the state, window, and the
        microseconds until that window ends, 0 if it has."""
    def give_back(self, now_ns: int, *, ended_only: bool) -> int:
        """Take what is left of the lease, to be returned. ended_only: only of a window that is over."""
    def report(self, now_ns: int) -> int:
        """Take what was used and not yet reported."""
    @property
    def owes(self) -> bool:
        """Whether something was used that the store was not told."""
    def unreport(self, used: int) -> None:
        """Put back what report() gave and the store did not get."""
    def told(self, sent_ns: int, answer: tuple[int, int, int, int, int, int]) -> None:
        """Note an answer: granted, left in the store, window, microseconds until its end, number of the state, epoch.

        sent_ns: when it was asked for. What is granted for a window that is over here is dropped.
        """
    def exact(self, now_ns: int, granted: int) -> tuple[bool, int, int, int]:
        """Return (allowed, limit, remaining, seconds to the next refill) of a decision that the store has made, and
        charge the limit of this replica with it."""
    def idle_ns(self, now_ns: int) -> int:
        """Return how long it has been unused, without news from the store."""
    def unknown(self, now_ns: int, most_ns: int) -> bool:
        """Tell whether the last answer is older than `most_ns`, or from a window that is over."""
