from collections.abc import Iterable

from headgate_engine.shared.segment import Segment

WINDOWS: tuple[str, ...]
UNITS: tuple[str, ...]
ACCOUNT: bytes
SPEND: bytes

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
        """Take back what a process has reserved that has died. Those that share the last place keep theirs."""

class UsageLimits:
    """An account with its limits, as one configuration has them.

    limits: (window, unit, most, warn at), -1 for no warning. Raises ValueError for a limit below 0.
    """

    def __init__(self, account: UsageAccount, limits: Iterable[tuple[str, str, int, int]]) -> None: ...
    @property
    def account(self) -> UsageAccount: ...
    @property
    def tokens(self) -> bool: ...
    @property
    def money(self) -> bool: ...

class SpendCell:
    """What a key has spent on a day with one model, and the ledger does not have yet. An empty model: its requests.

    names: key, team, model, day.
    """

    def __init__(self, segment: Segment, names: tuple[str, str, str, str]) -> None: ...
    def take(self) -> tuple[int, int, int, int, int]:
        """Take what is there: requests, calls, input tokens, output tokens, picodollars."""
