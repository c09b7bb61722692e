from headgate_engine.load.arrivals import Arrivals
from headgate_engine.load.core import LoadCore, LoadTarget
from headgate_engine.load.request import LoadRequest

class Generator(LoadCore):
    """The loop of a load generator. It sends its requests in turn, over HTTP/1.1 or, with `streams`, HTTP/2.

    streams: requests at a time on each connection of HTTP/2; 0: HTTP/1.1. timeout: seconds from when a request left
    until it is given up. Raises ValueError for numbers out of range.
    """

    def __init__(
        self,
        target: LoadTarget,
        requests: tuple[LoadRequest, ...],
        connections: int,
        streams: int = 0,
        *,
        reuse: bool = True,
        timeout: float = 30.0,
    ) -> None: ...
    def open(self) -> None:
        """Begin to open all connections."""
    def start(self, arrivals: Arrivals, *, warm_up: float = 0.0, grace: float = 5.0) -> None:
        """Begin a run. Requests that are due in the first `warm_up` seconds are sent and not counted.

        grace: seconds behind the end of the run in which late answers are waited for.
        """
    def run(self, until_ns: int) -> bool:
        """Send and read until that time, ten seconds at most.

        Return whether the run is over; before start(), whether all connections are open.
        """
    def close(self) -> None:
        """Close all connections. What is under way fails."""
