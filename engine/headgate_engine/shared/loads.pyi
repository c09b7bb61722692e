from headgate_engine.shared.segment import Segment

class WorkerLoads:
    """How many connections each of `workers` workers has, seen by all. Workers count from 0; IndexError beyond them.

    Every process must give the same number of workers: ValueError. SegmentFull without room. stalled_ns: nobody leaves
    a connection to a worker that has not heard for so long that it is called to accept.
    """

    stalled_ns: int
    def __init__(self, segment: Segment, workers: int) -> None: ...
    @property
    def workers(self) -> int: ...
    def reset(self, worker: int) -> None:
        """Forget what a worker had that is gone; nobody leaves connections to it until accept()."""
    def accept(self, worker: int, accepting: bool) -> None:
        """Say whether a worker accepts connections, so that others may leave some to it."""
    def counts(self) -> list[int | None]:
        """Return the connections of each worker, None for one that does not accept any."""
