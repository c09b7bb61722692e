"""The open loop without a socket or a clock: a test says what time it is."""

from headgate_engine.load.arrivals cimport NEVER, Arrivals
from headgate_engine.load.histogram cimport LatencyHistogram
from headgate_engine.load.ledger cimport LoadLedger

from headgate_engine.load.stamp cimport hg_recv_stamped, hg_stamp

from libc.errno cimport errno
from libc.stdint cimport int64_t, uint64_t


def due_of(Arrivals arrivals not None, int64_t number):
    """Return when request `number` is due."""
    return arrivals.due_ns(number)


def next_of(Arrivals arrivals not None, int64_t now_ns):
    """Return when the next request is due; None: there is none left."""
    cdef int64_t found = arrivals.next_ns(now_ns)
    return None if found == NEVER else found


def gathered(Arrivals arrivals not None, int64_t now_ns, int64_t span_ns):
    return arrivals.gathered_ns(now_ns, span_ns)


def stamp(int fd):
    if hg_stamp(fd) < 0:
        raise OSError(errno, "SO_TIMESTAMPNS")


def recv_stamped(int fd):
    cdef char data[4096]
    cdef int64_t wall_ns
    cdef ssize_t n = hg_recv_stamped(fd, data, sizeof(data), &wall_ns)
    if n < 0:
        raise OSError(errno, "recvmsg")
    return data[:n], wall_ns


def take(Arrivals arrivals not None, int64_t now_ns):
    return arrivals.take(now_ns)


def note(LatencyHistogram histogram not None, int64_t value, uint64_t times=1):
    histogram.note(value, times)


def answered(LoadLedger ledger not None, int64_t due_ns, int64_t now_ns):
    ledger.answered(due_ns, now_ns)


def lost(LoadLedger ledger not None, int64_t due_ns, int64_t now_ns, str kind not None, bint waited):
    ledger.lost(due_ns, now_ns, kind, waited)
