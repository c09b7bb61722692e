# Paths of requests in one form, and the ways in which servers may read them.

from headgate_engine.context.headers cimport MessageHead

cdef enum PathMode:
    PATH_RESOLVE = 0      # dot segments are resolved, unreserved characters decoded
    PATH_REFUSE = 1       # what is not in that form, or has several readings, is refused
    PATH_KEEP = 2         # the path goes on as it came

# Brings the path of a request into its form, and sets HEAD_SEVERAL_READINGS. Returns False if it is refused.
cdef bint settle_path(MessageHead head, int mode) except -1
# The other readings of the head's path, each a target without a query.
cdef tuple other_readings(MessageHead head)

# Puts another path into a head for a while.
cdef class PathGuise:
    cdef MessageHead head
    cdef unsigned int target_off, target_len, path_len, length
    cdef bytes query
    cdef int wear(self, bytes path) except -1
    cdef int drop(self) noexcept

cdef PathGuise guise_of(MessageHead head)
