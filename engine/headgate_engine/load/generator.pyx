# cython: boundscheck=False
"""The loop of a load generator; see generator.pxd.

boundscheck is off: places in `lines` come from the list of free places and from epoll, which have them from it.
"""

from headgate_engine.clock cimport monotonic_ns, wall_ns
from headgate_engine.load.arrivals cimport NEVER, Arrivals
from headgate_engine.load.core cimport LoadCore, LoadTarget
from headgate_engine.load.ledger cimport LoadLedger
from headgate_engine.load.http1_line cimport Http1Line
from headgate_engine.load.http2_line cimport Http2Line
from headgate_engine.load.line cimport LINE_CLOSED, LINE_READY, LoadLine
from headgate_engine.load.request cimport JUDGE_STREAM, LoadRequest

from cpython.list cimport PyList_GET_ITEM
from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t

import socket

cdef extern from *:
    """
    #include <errno.h>
    #include <poll.h>
    #include <sys/epoll.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>
    #ifndef SYS_epoll_pwait2
    #define SYS_epoll_pwait2 441
    #endif

    /* Waits as long as a number of nanoseconds: a millisecond, as epoll_wait(2) has it, is longer than most answers take.
       Before Linux 5.11: poll(2) with a time of that kind, and a look. */
    static int hg_wait(int fd, struct epoll_event *events, int most, long long wait_ns)
    {
        static int lacking = 0;
        struct timespec span = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
        struct pollfd one = {fd, POLLIN, 0};
        if (wait_ns <= 0)
            return epoll_wait(fd, events, most, 0);
        if (!lacking) {
            long found = syscall(SYS_epoll_pwait2, fd, events, most, &span, NULL, (size_t)8);
            if (found >= 0 || errno != ENOSYS)
                return (int)found;
            lacking = 1;
        }
        if (ppoll(&one, 1, &span, NULL) < 0)
            return -1;
        return epoll_wait(fd, events, most, 0);
    }

    static void hg_sleep(long long until_ns)
    {
        struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }

    /* How late the kernel may end a wait: 50 us by default, so that it need not set its timer for each. Returns what it was. */
    static int hg_slack(int slack_ns)
    {
        int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
        prctl(PR_SET_TIMERSLACK, slack_ns, 0, 0, 0);
        return before;
    }
    """
    ctypedef union epoll_data_t:
        uint64_t u64
    cdef struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_create1(int flags) nogil
    int EPOLL_CLOEXEC
    int hg_wait(int fd, epoll_event* events, int most, long long wait_ns) nogil
    void hg_sleep(long long until_ns) nogil
    int hg_slack(int slack_ns) nogil

cdef enum:
    EVENTS = 256

cdef int64_t SWEEP_NS = 50000000
cdef int64_t LONGEST_NS = 10000000000
# A request that is due in so short a time is waited for without looking at answers, which is half of the wake-ups. The kernel
# says when they came; by the time of day, so that a nap is too short for an adjusted clock to drift.
cdef int64_t NAP_NS = 5000000
# Requests that are due so close to each other leave together.
cdef int64_t GATHER_NS = 60000
cdef enum:
    SLACK_NS = 1000


cdef class Generator(LoadCore):
    def __init__(self, LoadTarget target not None, tuple requests not None, int connections, int streams=0, *,
                 bint reuse=True, double timeout=30.0):
        cdef LoadLine line
        cdef Http2Line several
        if not 0 < connections <= 100000 or not 0 <= streams <= 10000:
            raise ValueError("a run has 1 to 100,000 connections, and up to 10,000 streams on each")
        if not 0.0 < timeout <= 86400.0:
            raise ValueError("a time limit is more than nothing, and a day at most")
        LoadCore.__init__(self, target, requests, <Py_ssize_t>connections * max(streams, 1), reuse)
        self.timeout_ns = <int64_t>(timeout * 1e9)
        self.lines = []
        for place in range(connections):
            if streams:
                several = Http2Line()
                several.most = streams
                line = several
            else:
                line = Http1Line()
            line.core, line.place = self, place
            self.lines.append(line)

    def open(self):
        cdef LoadLine line
        if self.epoll >= 0 or self.lines is None:
            raise ValueError("it is opened once")
        self.epoll = epoll_create1(EPOLL_CLOEXEC)
        if self.epoll < 0:
            raise OSError(errno, "epoll_create1")
        for line in self.lines:
            line.open(monotonic_ns())

    def start(self, Arrivals arrivals not None, *, double warm_up=0.0, double grace=5.0):
        cdef LoadLine line
        if self.epoll < 0:
            raise ValueError("it is not open")
        self.arrivals, self.finished = arrivals, False
        self.ledger.since_ns = arrivals.start_ns + <int64_t>(warm_up * 1e9)
        self.ledger.until_ns = arrivals.end_ns
        self.grace_ns = <int64_t>(grace * 1e9)
        self.stamped = self._gathers()
        if self.stamped:
            for line in self.lines:
                line.stamp()

    cdef bint _gathers(self) except -1:
        """Return whether answers may be read some time after they came.

        A read of HTTP/1.1 ends with an answer, and the kernel says when it came. One of HTTP/2, or of a stream, may have several,
        and the time of the last.
        """
        cdef LoadRequest request
        cdef LoadLine line = self.lines[0]
        for request in self.requests:
            if request.judgement == JUDGE_STREAM:
                return False
        return self.arrivals.rate * <double>NAP_NS >= 1e9 and isinstance(line, Http1Line) \
            and self.target.family in (socket.AF_INET, socket.AF_INET6)

    def run(self, int64_t until_ns):
        """Send and read until that time."""
        cdef int slack
        if self.epoll < 0:
            raise ValueError("it is not open")
        slack = hg_slack(SLACK_NS)
        try:
            return self._run(min(until_ns, monotonic_ns() + LONGEST_NS))
        finally:
            hg_slack(slack)

    cdef bint _run(self, int64_t until_ns) except -1:
        cdef int64_t now = monotonic_ns()
        cdef int64_t due
        while True:
            if self.arrivals is not None:
                self._dispatch(now)
                if self._over(now):
                    return True
            elif self.ready == len(self.lines):
                return True
            if now >= until_ns:
                return False
            due = self.arrivals.next_ns(now) if self.free_count and self.arrivals is not None else NEVER
            if self.stamped and due < now + NAP_NS:
                self._sleep(self.arrivals.gathered_ns(now, GATHER_NS))
                self._poll(0)
                self.looked_ns = 0
            else:
                self._poll(min(min(until_ns, self.sweep_ns), due))
            now = monotonic_ns()
            if self.closed:
                self._reopen(now)
            if now >= self.sweep_ns:
                self._sweep(now)

    cdef int _dispatch(self, int64_t now_ns) except -1:
        cdef Arrivals arrivals = self.arrivals
        cdef LoadLine line
        cdef int64_t due
        while self.free_count and arrivals.next_ns(now_ns) <= now_ns:
            line = <LoadLine>PyList_GET_ITEM(self.lines, self.free[self.free_at])
            self.free_at += 1
            if self.free_at == self.free_room:
                self.free_at = 0
            self.free_count -= 1
            line.offered -= 1
            if line.state != LINE_READY or line.room() <= 0:
                continue         # it was closed, or may take fewer than it could; it will say so again
            due = arrivals.take(now_ns)
            if due >= self.ledger.since_ns:
                self.ledger.sent += 1
            line.begin(self.next_request(), due, now_ns)
        if self.unsent:
            self._push(now_ns)
        return 0

    cdef int _push(self, int64_t now_ns) except -1:
        cdef LoadLine line
        cdef list lines = self.unsent
        self.unsent = []
        for line in lines:
            line.push(now_ns)
        return 0

    cdef int _sleep(self, int64_t until_ns) except -1:
        """Sleep until then, whatever comes."""
        with nogil:
            hg_sleep(until_ns)
        self.looked_ns = self.polled_ns
        self.wall_offset_ns = wall_ns() - monotonic_ns()
        return 0

    cdef int _poll(self, int64_t until_ns) except -1:
        cdef epoll_event events[EVENTS]
        cdef int found, i
        cdef int fd = self.epoll
        cdef int64_t wait, due
        cdef LoadLine line
        self.polled_ns = monotonic_ns()
        wait = until_ns - self.polled_ns
        if wait <= 0:
            found = hg_wait(fd, events, EVENTS, 0)
        else:
            with nogil:
                found = hg_wait(fd, events, EVENTS, wait)
        if found < 0:
            if errno != EINTR:
                raise OSError(errno, "epoll_wait")
            return 0
        for i in range(found):
            line = <LoadLine>PyList_GET_ITEM(self.lines, <Py_ssize_t>events[i].data.u64)
            line.on_event(events[i].events, monotonic_ns())
        if self.free_count and self.arrivals is not None and self.arrivals.rate > 0.0:
            wait = monotonic_ns()
            due = self.arrivals.next_ns(wait)
            if due <= wait and due >= self.ledger.since_ns:
                self.ledger.lag.note(wait - due, 1)
        return 0

    cdef int _reopen(self, int64_t now_ns) except -1:
        cdef list lines = self.closed
        cdef LoadLine line
        self.closed = []
        for line in lines:
            if line.state != LINE_CLOSED:
                continue
            if line.again_ns <= now_ns:
                line.open(now_ns)
            else:
                self.closed.append(line)
        return 0

    cdef int _sweep(self, int64_t now_ns) except -1:
        cdef LoadLine line
        self.sweep_ns = now_ns + SWEEP_NS
        for line in self.lines:
            line.overdue(now_ns - self.timeout_ns, now_ns)
        return 0

    cdef bint _over(self, int64_t now_ns) except -1:
        if self.finished:
            return True
        if now_ns < self.arrivals.end_ns:
            return False
        if self.in_flight or self.arrivals.next_ns(now_ns) <= now_ns:
            if now_ns < self.arrivals.end_ns + self.grace_ns:
                return False
            self._give_up(now_ns)
        self.finished = True
        return True

    cdef int _give_up(self, int64_t now_ns) except -1:
        """The time for late answers is over. What has no answer counts with the time that it has waited."""
        cdef LoadLine line
        cdef LoadLedger ledger = self.ledger
        cdef int64_t due
        cdef uint64_t unsent = 0
        for line in self.lines:
            if line.active:
                line.close("no answer by the end of the run", True, now_ns)
        while self.arrivals.next_ns(now_ns) <= now_ns:
            due = self.arrivals.take(now_ns)
            if due >= ledger.since_ns:
                ledger.latency.note(now_ns - due, 1)
                unsent += 1
        if unsent:
            ledger.told("not sent by the end of the run", unsent)
        return 0

    def close(self):
        cdef LoadLine line
        for line in self.lines or ():
            line.close("closed", False, monotonic_ns())
        self.closed = []
