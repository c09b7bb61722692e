# Route choice over host, path, method, headers and query: compiled once, immutable.

from headgate_engine.context.headers cimport MessageHead

cdef class ValuePredicate:
    # One header or query condition.
    cdef readonly str name, kind, text
    cdef bytes raw_name, exact
    cdef object pattern                # compiled linear-time pattern, None for exact
    cdef bint holds(self, const char* value, Py_ssize_t n) except -1

cdef class RouteRule:
    # One match entry of one route.
    cdef readonly tuple hostnames
    cdef readonly str path_kind, path, method
    cdef readonly tuple headers, query   # ValuePredicate
    cdef readonly object target
    cdef readonly int order
    cdef bytes raw_method, raw_path
    cdef object pattern
    cdef bint accepts(self, MessageHead head) except -1
    cdef bint _header_holds(self, ValuePredicate predicate, MessageHead head) except -1

cdef class HostBucket:
    # The rules of one host name.
    cdef dict exact                    # path -> list of RouteRule
    cdef dict prefix                   # path without trailing slash -> list of RouteRule
    cdef bytes prefix_lengths          # byte i is 1 when a prefix of length i exists
    cdef list regex                    # RouteRule, in rank order
    cdef RouteRule match(self, MessageHead head)

cdef class RouteTable:
    cdef dict exact, wildcard          # host or suffix (".api.test") -> HostBucket
    cdef HostBucket any_host
    cdef readonly int size
    # The rule a request takes, or None. `host` may carry a port.
    cdef RouteRule match_rule(self, const char* host, Py_ssize_t host_len, MessageHead head)

cdef class HostTable:
    # Exact name, then the longest `*.suffix`, then the entry without a name.
    cdef dict exact, wildcard
    cdef object any_host
    cdef object find(self, const char* host, Py_ssize_t n)

# Host name in lower case, port and trailing dot removed.
cdef bytes host_name(const char* host, Py_ssize_t n)
