from collections.abc import Iterable

from headgate_engine.shared.segment import Segment

WINDOWS: tuple[str, ...]
UNITS: tuple[str, ...]
ACCOUNT: bytes
HELD: bytes
SPEND: bytes
FENCE: bytes

class UsageAccount:
    """What a key or a team has used, and what is reserved for requests under way. scope: `key` or `team`."""

    def __init__(self, segment: Segment, scope: str, name: str) -> None: ...
    @property
    def scope(self) -> str: ...
    @property
    def name(self) -> str: ...
    def add_elsewhere(self, window: int, start_s: int, used: tuple[int, int, int]) -> None:
        """Add what was used elsewhere (before a restart, by another replica) in the window that began at `start_s`.

        used: requests, tokens, picodollars. Raises ValueError for a window that does not exist.
        """
    def state(self, now_s: int) -> dict[str, dict[str, int]]:
        """Return by the names of windows when they end and what was used, and under `reserved` what is reserved.

        `ends` is in Unix seconds, `dollars` in picodollars.
        """
    def forget(self, holder: int) -> None:
        """Take back what a process has reserved that has died. Those that share the last number keep theirs."""

    def terms(self, window: str, unit: str, now_s: int) -> tuple[int, int, int, int, int, int]:
        """Return what a store is told of a window and a unit.

        When the window began and ends (Unix seconds), what is left of the lease (below 0: more is used and reserved),
        what this gateway has used, all that it has leased, and what others have used as far as it is known. Raises
        ValueError for a window or a unit that does not exist, as the next two methods do.
        """
    def lease(self, place: tuple[str, str], start_s: int, granted: int, spare: int, until_ns: int) -> bool:
        """Add what was granted to the lease of (window, unit). Return False if the window is over.

        spare: what the store had left, which is believed until `until_ns` of the monotonic clock.
        """
    def give_back(self, place: tuple[str, str], start_s: int, keep: int, granule: int) -> int:
        """Take what is left of a lease beyond `keep`, in whole granules, and return it."""

    def lends(self, place: tuple[str, str], start_s: int, granule: int) -> tuple[int, int]:
        """Return what the store may take back of a lease, in whole granules, and what was last reported of it.

        It is what requests under way have reserved. 0 and 0 if the window is over.
        """
    def lend(self, place: tuple[str, str], start_s: int, lent: int) -> None:
        """Note what was reported to the store as what it may take back."""

    def exposed(self, now_s: int) -> bool:
        """Tell whether the store would take back what has been spent since requests in flight were last reported."""

    def take_lent(self, now_s: int) -> None:
        """Take from the lease what the store has taken back."""

class LeaseState:
    """Whether limits are held against leases of a store that gateways share.

    segment: where the processes of a gateway share what they know of it.
    """

    def __init__(self, segment: Segment | None = None) -> None: ...
    @property
    def on(self) -> bool: ...
    @property
    def local(self) -> bool: ...
    @property
    def down(self) -> bool: ...
    def configure(self, on: bool, local: bool) -> None:
        """on: gateways share a store. local: without it each of them decides by what it knows."""
    def set_down(self, down: bool) -> None:
        """Note whether the store can be asked."""

    def set_fence(self, at_ns: int) -> None:
        """Do without what is lent from a time of the monotonic clock on, in ns; 0: never.

        Raises ValueError without a segment.
        """

class UsageLimits:
    """An account with its limits, as one configuration has them.

    limits: (window, unit, most, warn at), -1 for no warning. state: whether they are held against leases, None: they
    are not. Raises ValueError for a limit below 0.
    """

    def __init__(
        self, account: UsageAccount, limits: Iterable[tuple[str, str, int, int]], state: LeaseState | None = None
    ) -> None: ...
    def lacking(self, requests: int, tokens: int, picos: int, now_s: int) -> list[tuple[str, str, int, int]]:
        """Return (window, unit, how much is wanted, the limit) of what so much more is not leased of."""
    def crossed(self, now_s: int) -> list[tuple[str, str, int, int, int, int]] | None:
        """Return what has come to its warning, None: nothing has.

        Of each sum window, unit, when the window began and ends (Unix seconds), what was used, and the limit.
        """
    @property
    def account(self) -> UsageAccount: ...
    @property
    def tokens(self) -> bool: ...
    @property
    def money(self) -> bool: ...

class SpendCell:
    """What a key has spent on a day with one model. An empty model: its requests.

    names: key, team, model, day.
    """

    def __init__(self, segment: Segment, names: tuple[str, str, str, str]) -> None: ...
    def take(self, batch: int) -> tuple[int, int, int, int, int]:
        """Take what came since the last batch: requests, calls, input tokens, output tokens, picodollars.

        batch: the number under which that is noted; each is higher than those before. Raises ValueError for others.
        """
