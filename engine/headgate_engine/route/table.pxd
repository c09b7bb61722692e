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
    cdef public object target            # may be replaced: the next match gives the new one back
    cdef readonly int order
    cdef bytes raw_method, raw_path      # raw_path: of a prefix, without its trailing slash
    cdef object pattern                  # of a regex path
    cdef tuple host_keys                 # what _host_key() makes of the host names; (None,) for any host
    cdef tuple ranked
    # Bytes of a matched path that the rule's prefix stands for; 0 for the other kinds. What a prefix rewrite replaces.
    cdef Py_ssize_t prefix_length(self) noexcept

# A rule as the matcher reads it.
cdef struct Candidate:
    PyObject* rule                       # RouteRule, kept alive by its table
    const char* method                   # NULL: any
    uint32_t method_len
    uint32_t conditions                  # index of its first one: headers, then query
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
    uint32_t exact                       # how many exact paths
    uint32_t lengths, length_count       # ascending lengths of prefixes, without that of `/`
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
    cdef list alive                      # what the structs above point to
    # The rule, borrowed, or NULL. May raise.
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
    cdef uint8_t[256] suffix_lengths     # 1 where a suffix of that length exists
    cdef void begin(self, HostWalk* walk, const char* host, Py_ssize_t n) noexcept nogil
    # Value of the next name that covers the host, or -1 when there is none left.
    cdef int32_t step(self, HostWalk* walk) noexcept nogil

cdef class RouteTable:
    cdef HostIndex hosts
    cdef PathIndex paths
    cdef object any_host                 # True when rules without host names exist
    cdef readonly int size
    # The rule a request takes, or None. `host` may carry a port.
    cdef RouteRule match_rule(self, const char* host, Py_ssize_t host_len, MessageHead head)

cdef class HostTable:
    # Exact name, then the longest `*.suffix`, then the entry without a name.
    cdef HostIndex hosts
    cdef tuple targets
    cdef object any_host
    cdef object find(self, const char* host, Py_ssize_t n)
