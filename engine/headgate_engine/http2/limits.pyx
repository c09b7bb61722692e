"""What a connection of HTTP/2 allows its peer; see limits.pxd."""

from libc.stdint cimport int64_t, uint32_t

from headgate_engine.http2.kinds cimport DEFAULT_FRAME, MAX_FRAME, MAX_WINDOW

cdef enum:
    ONE = 1000               # of a budget
    NS_PER_MS = 1000000
    MOST_STREAMS = 10000


cdef class Http2Limits:
    """Numbers of one side of a connection: bytes, counts, seconds.

    max_window: None lets a stream's window stay as it begins. ping_interval: 0 sends none.
    """

    def __init__(self, uint32_t window=65536, *, max_window=None, uint32_t connection_window=1048576,
                 uint32_t max_frame=16384, uint32_t max_streams=200, uint32_t max_list=16384, int max_fields=256,
                 int max_continuations=32, int resets=500, int resets_per_second=33, int oddities=1000,
                 int oddities_per_second=100, double ping_interval=0.0, double ping_timeout=20.0,
                 double settings_timeout=60.0):
        if not 1 <= window <= MAX_WINDOW or not 1 <= connection_window <= MAX_WINDOW:
            raise ValueError("a window has 1 to 2,147,483,647 bytes")
        if not DEFAULT_FRAME <= max_frame <= MAX_FRAME:
            raise ValueError("a frame has 16,384 to 16,777,215 bytes")
        if not 1 <= max_streams <= MOST_STREAMS:
            raise ValueError("a connection has 1 to 10,000 streams")
        if max_fields < 1 or max_list < 1 or max_continuations < 0 or min(resets, oddities) < 1 or min(
                resets_per_second, oddities_per_second) < 0:
            raise ValueError("a limit is too small")
        if ping_interval < 0 or ping_timeout <= 0 or settings_timeout <= 0:
            raise ValueError("a time is too short")
        self.window = window
        self.max_window = window if max_window is None else max(window, min(<uint32_t>max_window, MAX_WINDOW))
        self.connection_window = connection_window
        self.max_frame = max_frame
        self.max_streams = max_streams
        self.max_list = max_list
        self.max_fields = max_fields
        self.max_continuations = max_continuations
        self.resets, self.resets_per_second = resets, resets_per_second
        self.oddities, self.oddities_per_second = oddities, oddities_per_second
        self.ping_interval_ns = <int64_t>(ping_interval * 1e9)
        self.ping_timeout_ns = <int64_t>(ping_timeout * 1e9)
        self.settings_timeout_ns = <int64_t>(settings_timeout * 1e9)


cdef bint spend(RateBudget* budget, int burst, int per_second, int64_t now_ns) noexcept nogil:
    cdef int64_t passed_ms = (now_ns - budget.at_ns) // NS_PER_MS
    if budget.spent and passed_ms > 0:
        # Thousandths: so many a second are so many thousandths a millisecond.
        budget.spent = max(<int64_t>0, budget.spent - min(passed_ms, <int64_t>86400000) * per_second)
    if passed_ms > 0:
        budget.at_ns = now_ns
    budget.spent += ONE
    return budget.spent <= <int64_t>burst * ONE
