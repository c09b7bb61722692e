from collections.abc import Iterable

class RetryBudget:
    """Limit on retries. share: retries per request, 0..10. least: retries per second always allowed, 0..10000.

    Both are measured over the last ten seconds, in one worker. If most requests fail, unlimited retries would multiply
    the load of a backend that is already overloaded. Finagle and Linkerd have a share of 20 % and 10 retries a second:
    https://linkerd.io/2/reference/service-profiles/.
    """

    def __init__(self, share: float = 0.2, least: int = 10) -> None: ...
    @property
    def share(self) -> float: ...
    @property
    def least(self) -> int: ...
    def request(self, now_ns: int) -> None:
        """Count a request at `now_ns` (CLOCK_MONOTONIC). The exchange does this in C."""

    def retry(self, now_ns: int) -> bool:
        """Return whether the budget allows a retry at `now_ns` (CLOCK_MONOTONIC), and if so count it."""

class RetryPlan:
    """Which results of an attempt are retried.

    attempts: tries after the first, 1..255. codes: statuses that are retried. backoff_ns: pause between tries.
    condition, precondition: compiled expressions with `test(ctx)`, or None. budget: over all requests of the plan, or
    None. Raises ValueError for numbers out of range.
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
        """Return whether a response with this status is retried."""
