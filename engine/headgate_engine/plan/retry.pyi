from collections.abc import Iterable

class RetryBudget:
    """share: retries per request, 0..10. least: retries per second that are free whatever the share, 0..10000.

    Both count over the last ten seconds, in one worker.
    """

    def __init__(self, share: float = 0.2, least: int = 10) -> None: ...
    @property
    def share(self) -> float: ...
    @property
    def least(self) -> int: ...
    def request(self, now_ns: int) -> None:
        """Note a request at a time of CLOCK_MONOTONIC (the exchange does it in C)."""

    def retry(self, now_ns: int) -> bool:
        """Whether one more retry is within the budget at that time; it is counted then."""

class RetryPlan:
    """attempts: tries after the first, 1..255. codes: statuses that are tried again. backoff_ns: pause between tries.

    condition, precondition: compiled expressions with `test(ctx)`, or None. budget: over all requests of the plan, None
    without one. ValueError for numbers out of range.
    """

    def __init__(
        self,
        attempts: int,
        codes: Iterable[int] = (),
        *,
        backoff_ns: int = 0,
        condition: object | None = None,
        precondition: object | None = None,
        budget: RetryBudget | None = None,
    ) -> None: ...
    @property
    def budget(self) -> RetryBudget | None: ...
    @property
    def attempts(self) -> int: ...
    @property
    def backoff_ns(self) -> int: ...
    @property
    def condition(self) -> object | None: ...
    @property
    def precondition(self) -> object | None: ...
    def retries(self, status: int) -> bool:
        """Whether a response with that status is tried again."""
