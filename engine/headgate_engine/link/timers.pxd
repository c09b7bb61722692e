# Deadlines of connections and calls: an indexed binary heap driven by one loop timer. Moving a deadline further away
# only stores it; the heap entry is put right when it comes up. So a keep-alive connection costs one heap operation per
# idle period, not one per request.

from libc.stdint cimport int64_t

cdef class Timer:
    cdef int64_t deadline        # ns when on_timer() is due; 0: disarmed
    cdef int64_t scheduled       # ns the heap entry carries
    cdef int heap_index          # -1: not in the heap
    cdef int on_timer(self, int64_t now_ns) except -1

cdef class TimerQueue:
    cdef object loop
    cdef list entries            # Timer objects, heap order by `scheduled`
    cdef object handle
    cdef int64_t handle_ns
    cdef int arm(self, Timer timer, int64_t deadline) except -1
    cdef int disarm(self, Timer timer) except -1      # lazily: the entry stays, on_timer() is not called
    cdef int remove(self, Timer timer) except -1      # at the end of the owner's life
    cdef int _sift_up(self, int index) except -1
    cdef int _sift_down(self, int index) except -1
    cdef int _wake_by(self, int64_t when) except -1
    cdef int _fire(self, Timer timer, int64_t now) except -1
