"""A connection of HTTP/1.1; see http1_line.pxd."""

from headgate_engine.http1.codec cimport Http1Codec
from headgate_engine.http1.kinds cimport EV_DATA, EV_END, EV_HEAD, EV_INFORMATIONAL, ROLE_CLIENT
from headgate_engine.http1.states cimport S_DONE
from headgate_engine.load.flight cimport Flight
from headgate_engine.load.line cimport LINE_READY, LoadLine
from headgate_engine.load.request cimport LoadRequest
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

from headgate_engine.errors import RemoteProtocolError


cdef class Http1Line(LoadLine):
    def __cinit__(self):
        self.flight = Flight()
        self.copy = ByteBuffer()

    cdef int opened(self, int64_t now_ns) except -1:
        self.codec = Http1Codec(ROLE_CLIENT)
        return 0

    cdef Py_ssize_t room(self) noexcept:
        return 1 - self.active

    cdef int64_t oldest_ns(self) noexcept:
        return self.flight.sent_ns

    cdef int begin(self, LoadRequest request, int64_t due_ns, int64_t now_ns) except -1:
        self.flight.begin(request, due_ns, now_ns)
        # As if the codec had written it: it wrote `wire`.
        self.codec.send_state = S_DONE
        self.codec.request_flags = request.flags
        self.codec.our_keep_alive = True
        self.active = 1
        self.core.in_flight += 1
        if request.serial_at < 0:
            return self.transmit(request.wire, len(request.wire), now_ns)
        self.copy.clear()
        request.put(self.copy, request.wire, len(request.wire), self.core.serial)
        return self.transmit(self.copy.data, self.copy.length, now_ns)

    cdef int received(self, const char* p, Py_ssize_t n, int64_t now_ns) except -1:
        cdef Http1Codec codec = self.codec
        try:
            codec.feed(p, n)
            return self._read(codec, now_ns)
        except RemoteProtocolError as error:
            return self.broken(f"protocol: {error}", now_ns)

    cdef int _read(self, Http1Codec codec, int64_t now_ns) except -1:
        cdef int event
        while True:
            event = codec.next()
            if event == EV_DATA:
                self.flight.data(self.core.ledger, codec.data_ptr, codec.data_len, now_ns)
            elif event == EV_HEAD:
                self.flight.head(codec.take_head())
            elif event == EV_END:
                return self._done(codec, now_ns)
            elif event != EV_INFORMATIONAL:
                return 0

    cdef int _done(self, Http1Codec codec, int64_t now_ns) except -1:
        self.flight.end(self.core.ledger, now_ns)
        self.active = 0
        self.served = True
        self.core.in_flight -= 1
        if self.core.reuse and codec.reusable():
            codec.start_next_cycle()
            return self.offer()
        self._drop()
        self.again_ns = now_ns
        if self.core.reuse:
            self.core.ledger.reconnects += 1
        return 0

    cdef int ended(self, int64_t now_ns) except -1:
        cdef Http1Codec codec = self.codec
        if self.active:
            # The end of the connection may be the end of the answer. When that came the kernel does not say: no more naps.
            self.core.stamped = False
            try:
                codec.feed(NULL, 0)
                self._read(codec, now_ns)
            except RemoteProtocolError:
                pass
        if self.state == LINE_READY:
            return self.broken("closed before the answer's end", now_ns)
        return 0

    cdef int abandon(self, str kind, bint waited, int64_t now_ns) except -1:
        if self.active:
            self.active = 0
            self.core.in_flight -= 1
            self.core.ledger.lost(self.flight.due_ns, now_ns, kind, waited)
        return 0
