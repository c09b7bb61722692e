# How many descriptors a worker has, and who may open another one. Client connections have a limit of their own (link.worker); those
# to backends take what is left, but for a reserve.

from libc.stdint cimport int64_t

cdef class DescriptorBudget:
    cdef readonly int64_t limit          # descriptors that the process may have open
    cdef readonly int64_t upstream       # connections to backends, open and opening
    cdef readonly int64_t denied         # connections to backends that were not opened for want of a descriptor
    cdef readonly int64_t shed           # idle ones that were closed to make room
    cdef int64_t margin
    cdef int64_t told_ns, untold         # when it was logged, and how often it has happened since
    cdef dict pools                      # Pool -> None: whose idle connections may be closed

    # A connection to a backend may be opened beside so many of clients, and counts from now on. Else False, which is logged.
    cdef bint take(self, int64_t clients) except -1
    # One that was opened by other ways.
    cdef void count(self) noexcept
    cdef void give_back(self) noexcept
    # One more client beside so many leaves room for what the process needs for itself.
    cdef bint admits(self, int64_t clients) except -1
    # The kernel has refused a descriptor: True if idle connections were closed, so that another try may succeed.
    cdef bint ran_out(self, str reason) except -1
    cdef int64_t _make_room(self) except -1
    cdef int _tell(self, str reason) except -1
