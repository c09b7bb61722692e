"""Timer heap with lazy rescheduling; see timers.pxd."""

from cpython.list cimport PyList_GET_ITEM

from headgate_engine.clock cimport monotonic_ns

import logging

logger = logging.getLogger("headgate.engine")


cdef class Timer:
    def __cinit__(self):
        self.heap_index = -1

    cdef int on_timer(self, int64_t now_ns) except -1:
        raise NotImplementedError("Timer.on_timer")


cdef inline Timer _at(list entries, int index):
    return <Timer>PyList_GET_ITEM(entries, index)


cdef class TimerQueue:
    def __init__(self, loop):
        self.loop = loop
        self.entries = []
        self.handle = None
        self.handle_ns = 0

    def __len__(self):
        return len(self.entries)

    cdef int arm(self, Timer timer, int64_t deadline) except -1:
        timer.deadline = deadline
        if timer.heap_index >= 0:
            if deadline >= timer.scheduled:
                return 0
            timer.scheduled = deadline
            self._sift_up(timer.heap_index)
        else:
            timer.scheduled = deadline
            timer.heap_index = len(self.entries)
            self.entries.append(timer)
            self._sift_up(timer.heap_index)
        if timer.heap_index == 0:
            self._wake_by(timer.scheduled)
        return 0

    cdef int disarm(self, Timer timer) except -1:
        timer.deadline = 0
        return 0

    cdef int remove(self, Timer timer) except -1:
        cdef int index = timer.heap_index
        cdef int last = len(self.entries) - 1
        cdef Timer moved
        timer.deadline = 0
        if index < 0:
            return 0
        timer.heap_index = -1
        if index == last:
            self.entries.pop()
            return 0
        moved = <Timer>self.entries.pop()
        self.entries[index] = moved
        moved.heap_index = index
        self._sift_up(index)
        self._sift_down(moved.heap_index)
        return 0

    cdef int _sift_up(self, int index) except -1:
        cdef list entries = self.entries
        cdef Timer timer = _at(entries, index)
        cdef Timer parent
        cdef int above
        while index > 0:
            above = (index - 1) >> 1
            parent = _at(entries, above)
            if parent.scheduled <= timer.scheduled:
                break
            entries[index] = parent
            parent.heap_index = index
            index = above
        entries[index] = timer
        timer.heap_index = index
        return 0

    cdef int _sift_down(self, int index) except -1:
        cdef list entries = self.entries
        cdef int size = len(entries)
        cdef Timer timer = _at(entries, index)
        cdef Timer child
        cdef int below
        while True:
            below = 2 * index + 1
            if below >= size:
                break
            if below + 1 < size and _at(entries, below + 1).scheduled < _at(entries, below).scheduled:
                below += 1
            child = _at(entries, below)
            if child.scheduled >= timer.scheduled:
                break
            entries[index] = child
            child.heap_index = index
            index = below
        entries[index] = timer
        timer.heap_index = index
        return 0

    cdef int _wake_by(self, int64_t when) except -1:
        cdef int64_t delay
        if self.handle is not None:
            if self.handle_ns <= when:
                return 0
            self.handle.cancel()
        delay = when - monotonic_ns()
        if delay < 1000000:
            delay = 1000000
        self.handle_ns = when
        self.handle = self.loop.call_later(delay / 1e9, self._run)
        return 0

    def _run(self):
        cdef int64_t now = monotonic_ns()
        cdef Timer timer
        self.handle = None
        while self.entries:
            timer = _at(self.entries, 0)
            if timer.scheduled > now:
                break
            if timer.deadline > now:
                timer.scheduled = timer.deadline
                self._sift_down(0)
                continue
            self._fire(timer, now)
        if self.entries and self.handle is None:
            self._wake_by(_at(self.entries, 0).scheduled)

    cdef int _fire(self, Timer timer, int64_t now) except -1:
        cdef bint due = timer.deadline != 0
        self.remove(timer)
        if not due:
            return 0
        try:
            timer.on_timer(now)
        except Exception:  # task boundary: one owner's fault must not stop the other timers
            logger.exception("timer failed")
        return 0

    def close(self):
        if self.handle is not None:
            self.handle.cancel()
            self.handle = None
        for timer in self.entries:
            (<Timer>timer).heap_index = -1
        self.entries.clear()
