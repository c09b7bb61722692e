# A backend whose destination each request names: by its authority, by the value of an expression, or by the name in a TLS
# handshake. Pools are made as they are needed, and closed when nobody does.

from headgate_engine.expr.program cimport Program
from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.timers cimport Timer
from headgate_engine.link.worker cimport Worker

from libc.stdint cimport int64_t

cdef enum:
    # Destinations of one backend with a pool in each worker.
    MOST_DESTINATIONS = 1024
    # Ways to write them that are known without asking `settle`.
    MOST_SPELLINGS = 4096
    # How many pools are looked at for one that can make room for another.
    LOOKED_AT = 64

cdef class Destinations(Timer):
    cdef Worker worker
    # settle(authority: bytes) -> bytes: the one way to write it, `host:port`. Raises ValueError for what names no place,
    # and DestinationRefusedError for one that is not allowed.
    cdef object settle
    cdef object open                 # open(`host:port`) -> Pool
    cdef object pools                # collections.OrderedDict: `host:port` -> Pool, the least recently used first
    cdef dict spellings              # as clients wrote it -> Pool
    cdef int64_t rest_ns             # time between two looks for pools that nobody uses
    cdef public Py_ssize_t most

    cdef Pool find(self, bytes authority)
    cdef Pool learn(self, bytes authority)
    cdef int make_room(self) except -1

cdef class DestinationBackend(Backend):
    cdef readonly Destinations requests      # of calls; None: it is for connections only
    cdef readonly Destinations tunnels       # of CONNECT and of connections that carry no HTTP; None: there are none
    cdef Program target                      # None: the request's authority
    cdef int default_port                    # of the scheme that is spoken with destinations

    cdef bytes authority_of(self, RoutedRequest request)
    cdef int refuse(self, RoutedRequest request, int reply, str detail, bint told) except -1
