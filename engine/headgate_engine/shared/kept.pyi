from headgate_engine.shared.segment import Segment

LEAST_BYTES: int

def lay_out_file(fd: int) -> Segment:
    """Return a new segment for limits in an open file, which has its size and its blocks already.

    The segment owns the descriptor: close() closes it. Raises ValueError if the file is too small or has a segment.
    """

def keep(segment: Segment, kept: Segment) -> None:
    """Let what outlives all processes of a segment lie in another one.

    Call this before anything is there, and before other processes attach to it. Raises ValueError if there is one.
    """
