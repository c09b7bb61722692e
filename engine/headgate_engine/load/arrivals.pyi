class Arrivals:
    """When requests are due. Times are ns of the monotonic clock.

    rate: requests a second, at fixed intervals; 0: a closed loop, in which the next one is due when a connection is
    free. Raises ValueError for numbers out of range.
    """

    def __init__(self, start_ns: int, rate: float, duration_ns: int) -> None: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def taken(self) -> int:
        """Requests that were handed out."""
    @property
    def total(self) -> int:
        """Requests of the whole run; 0 in a closed loop."""
    def waiting(self, now_ns: int) -> int:
        """Return how many have been due and were not handed out."""
