# Route choice over host, path, method, headers and query: compiled once, immutable.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint32_t

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.route.conditions cimport Condition, ConditionTable, Facts
from headgate_engine.route.index cimport KeyIndex

cdef class RouteRule:
    # One match entry of one route.
    cdef readonly tuple hostnames
    cdef readonly str path_kind, path, method
    cdef readonly tuple headers, query   # ValuePredicate
    cdef public object target            # may be replaced: the next match returns the new one
    cdef readonly int order
    cdef bytes raw_method, raw_path      # raw_path of a prefix has no trailing slash
    cdef object pattern                  # of a regex path
    cdef tuple host_keys                 # results of _host_key() for the host names; (None,) for any host
    cdef tuple ranked
    # Returns the bytes of a matched path that a prefix rewrite replaces: the rule's prefix; 0 for the other kinds.
    cdef Py_ssize_t prefix_length(self) noexcept
    # Whether the path of a head is below the rule's prefix; True for the other kinds.
    cdef bint covers(self, MessageHead head) noexcept

# The compiled form of a rule for the matcher.
cdef struct Candidate:
    PyObject* rule                       # RouteRule, kept alive by its table
    const char* method                   # NULL: any
    uint32_t method_len
    uint32_t conditions                  # index of the first one: headers, then query
    uint32_t headers, queries
    uint32_t low_off, low_len            # regex: no path below `low` or above `high` can match
    uint32_t high_off, high_len
    uint8_t bounded                      # low and high are known

# The rules of one path of one host, in rank order.
cdef struct PathEntry:
    uint32_t first, count                # candidates
    int32_t parent                       # prefix: entry of the next shorter prefix of the same path, or -1

# The rules of one host name.
cdef struct Bucket:
    uint32_t exact                       # number of exact paths
    uint32_t lengths, length_count       # lengths of prefixes, ascending, without `/`
    int32_t root                         # entry of prefix `/`, or -1
    uint32_t regex, regex_count          # candidates

cdef class PathIndex:
    cdef KeyIndex paths                  # key space 2 * bucket: exact, 2 * bucket + 1: prefix
    cdef ConditionTable names
    cdef Bucket* buckets
    cdef PathEntry* entries
    cdef Candidate* candidates
    cdef Condition* conditions
    cdef uint32_t* lengths
    cdef bytes bounds                    # texts of low_off and high_off
    cdef list alive                      # references to the objects that the structs above point to
    # Returns a borrowed reference to the rule, or NULL. May raise.
    cdef PyObject* match(self, int32_t bucket, Facts* facts, MessageHead head) except? NULL
    cdef PyObject* _first(self, uint32_t first, uint32_t count, Facts* facts, MessageHead head) except? NULL
    cdef PyObject* _patterns(self, Bucket* bucket, Facts* facts, MessageHead head) except? NULL
    cdef bint _accepts(self, const Candidate* candidate, Facts* facts, MessageHead head) except -1
    cdef int _allocate(self, Py_ssize_t buckets, Py_ssize_t rules, Py_ssize_t predicates) except -1
    cdef int _place(self, Py_ssize_t at, RouteRule rule, uint32_t conditions, bytearray bounds) except -1

# A walk from the most to the least specific name of a host.
cdef struct HostWalk:
    char[256] text                       # lower case, without port and trailing dot
    Py_ssize_t length, at

cdef class HostIndex:
    cdef KeyIndex names                  # key space 0: exact names, 1: suffixes with their leading dot
    cdef uint8_t[256] suffix_lengths     # 1 for the lengths of suffixes
    cdef void begin(self, HostWalk* walk, const char* host, Py_ssize_t n) noexcept nogil
    # Returns the value of the next name that covers the host, or -1 after the last one.
    cdef int32_t step(self, HostWalk* walk) noexcept nogil

cdef class RouteTable:
    cdef HostIndex hosts
    cdef PathIndex paths
    cdef object any_host                 # True if rules without host names exist
    cdef readonly int size
    # Returns the rule for a request, or None. `host` may have a port.
    cdef RouteRule match_rule(self, const char* host, Py_ssize_t host_len, MessageHead head)

cdef class HostTable:
    # Finds the exact name, else the longest `*.suffix`, else the entry without a name.
    cdef HostIndex hosts
    cdef tuple targets
    cdef object any_host
    cdef object find(self, const char* host, Py_ssize_t n)
