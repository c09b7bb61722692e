from collections.abc import Iterable

class RetryPlan:
    """attempts: tries after the first, 1..255. codes: statuses that are tried again. backoff_ns: pause between tries.

    condition, precondition: compiled expressions with `test(ctx)`, or None. ValueError for numbers out of range.
    """

    def __init__(
        self,
        attempts: int,
        codes: Iterable[int] = (),
        *,
        backoff_ns: int = 0,
        condition: object | None = None,
        precondition: object | None = None,
    ) -> None: ...
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
