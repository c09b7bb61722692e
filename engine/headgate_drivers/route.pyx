"""Tables of routes: their index alone, and the time that a match takes."""

import time

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.route.index cimport KeyIndex
from headgate_engine.route.table cimport RouteTable

cdef enum:
    MAX_ROUNDS = 100000000


def longest_prefix(KeyIndex index not None, uint32_t space, bytes path not None, lengths):
    cdef list ordered = sorted(set(lengths) - {0})
    cdef Py_ssize_t i, count = len(ordered)
    cdef uint32_t* raw
    if index.slots == NULL:
        raise TypeError("the index was not built")
    raw = <uint32_t*>malloc((count + 1) * sizeof(uint32_t))
    if raw == NULL:
        raise MemoryError()
    try:
        for i in range(count):
            raw[i] = ordered[i]
        return index.find_prefix(space, path, len(path), raw, <uint32_t>count)
    finally:
        free(raw)


def matched(RouteTable table not None, str host not None, str method not None, str target not None, headers=()):
    """Return the rule that takes a request, None if none does."""
    cdef MessageHead head = described(host, method, target, headers)
    cdef bytes raw = host.encode()
    if table.paths is None:
        raise TypeError("the table was not built")
    return table.match_rule(raw, len(raw), head)


cdef MessageHead described(str host, str method, str target, headers):
    cdef MessageHead head = MessageHead()
    head.set_request(method, target, host)
    for name, value in headers:
        head.add(name, value)
    return head


def nanoseconds_per_match(RouteTable table not None, requests, *, Py_ssize_t rounds=10):
    cdef MessageHead head
    cdef list heads = []
    if table.paths is None:
        raise TypeError("the table was not built")
    if not 0 < rounds <= MAX_ROUNDS:
        raise ValueError(f"{rounds} rounds are not in 1..10**8")
    for host, method, target, headers in requests:
        heads.append(described(host, method, target, headers))
    began = time.perf_counter_ns()
    for _ in range(rounds):
        for head in heads:
            table.match_rule(head.data + head.authority_off, head.authority_len, head)
    return (time.perf_counter_ns() - began) / (rounds * max(1, len(heads)))
