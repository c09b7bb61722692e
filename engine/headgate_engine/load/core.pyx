"""What connections of a generator share; see core.pxd."""

from headgate_engine.load.arrivals cimport Arrivals
from headgate_engine.load.ledger cimport LoadLedger
from headgate_engine.load.request cimport LoadRequest
from headgate_engine.tls.context cimport KeptSession, TlsContext

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from posix.unistd cimport close


cdef class LoadTarget:
    def __init__(self, int family, object address not None, TlsContext tls=None, str server_name=None, bint check_name=True):
        if tls is not None and tls.server:
            raise ValueError("these are settings of a server")
        self.family, self.address = family, address
        self.tls, self.server_name, self.check_name = tls, server_name, check_name


cdef class LoadCore:
    def __cinit__(self):
        self.epoll = -1
        self.reuse = True
        self.ledger = LoadLedger()
        self.closed, self.unsent = [], []

    def __init__(self, LoadTarget target not None, tuple requests not None, Py_ssize_t places, bint reuse):
        cdef LoadRequest request
        if self.free != NULL:
            raise ValueError("it is set up once")
        if not requests or not 0 < places <= 10000000:
            raise ValueError("a run needs a request, and from one to ten million places for requests under way")
        for request in requests:
            if request is None:
                raise TypeError("None is no request")
        self.target, self.requests, self.reuse = target, requests, reuse
        self.session = KeptSession() if target.tls is not None else None
        self.free = <int*>malloc(places * sizeof(int))
        self.scratch = <char*>malloc(SCRATCH)
        self.opened = <char*>malloc(SCRATCH)
        if self.free == NULL or self.scratch == NULL or self.opened == NULL:
            raise MemoryError()
        self.free_room = places

    def __dealloc__(self):
        free(self.free)
        free(self.scratch)
        free(self.opened)
        if self.epoll >= 0:
            close(self.epoll)

    cdef int release(self, int place) except -1:
        if self.free_count == self.free_room:
            raise RuntimeError("more places are free than there are")
        self.free[(self.free_at + self.free_count) % self.free_room] = place
        self.free_count += 1
        return 0

    cdef LoadRequest next_request(self):
        cdef LoadRequest request = <LoadRequest>self.requests[self.turn]
        self.turn += 1
        if self.turn == len(self.requests):
            self.turn = 0
        self.serial += 1
        return request

    cdef int unconnected(self, str kind, int64_t now_ns) except -1:
        """Fail the requests that are due where no connection is left that could take them; in a closed loop one."""
        cdef Arrivals arrivals = self.arrivals
        if self.ready or arrivals is None:
            return 0
        while arrivals.next_ns(now_ns) <= now_ns:
            self.ledger.lost(arrivals.take(now_ns), now_ns, kind, False)
            if arrivals.rate == 0.0:
                break
        return 0
