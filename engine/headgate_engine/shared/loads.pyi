from headgate_engine.shared.segment import Segment

class WorkerLoads:
    """The number of connections of each worker, visible to all workers.

    workers: number of workers, the same in every process, else ValueError. Workers count from 0; IndexError beyond
    them. stalled_ns: a worker that does not react to a call to accept for this time gets no connections from others.
    Raises SegmentFull if there is no room.
    """

    stalled_ns: int
    def __init__(self, segment: Segment, workers: int) -> None: ...
    @property
    def workers(self) -> int: ...
    def reset(self, worker: int) -> None:
        """Reset the state of a worker that has ended. Others leave it no connections until accept()."""
    def accept(self, worker: int, accepting: bool) -> None:
        """Set whether a worker accepts connections, so that others may leave some to it."""
    def counts(self) -> list[int | None]:
        """Return the connections of each worker, None for one that does not accept any."""
