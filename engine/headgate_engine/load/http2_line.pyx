"""A connection of HTTP/2; see http2_line.pxd."""

from headgate_engine.http2.kinds cimport E_CANCEL
from headgate_engine.http2.limits cimport Http2Limits
from headgate_engine.http2.session cimport (
    H2_DATA, H2_END, H2_GOAWAY, H2_HEAD, H2_NONE, H2_RESET, H2_SETTINGS, Http2Session)
from headgate_engine.http2.states cimport ST_CLOSED
from headgate_engine.http2.stream cimport SessionStream
from headgate_engine.load.flight cimport Flight
from headgate_engine.load.line cimport LINE_CONNECTING, LINE_HANDSHAKE, LINE_READY, LoadLine
from headgate_engine.load.request cimport LoadRequest
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

from headgate_engine.http2 import kinds
from headgate_engine.http2.faults import ConnectionFault

cdef enum:
    BATCH = 65536
    MOST_SPARE = 1024

cdef Http2Limits LIMITS = Http2Limits(
    1048576, max_window=1048576, connection_window=16777216, max_list=65536, resets=1000000, oddities=1000000,
    oddities_per_second=1000000)


cdef class Http2Line(LoadLine):
    def __cinit__(self):
        self.spare = []
        self.copy = ByteBuffer()

    cdef int opened(self, int64_t now_ns) except -1:
        self.session = Http2Session(False, LIMITS)
        self.session.begin(now_ns)
        self.leaving = False
        if self.tls is not None and self.tls.selected_alpn_protocol() != "h2":
            return self._failed("connect: the server does not offer HTTP/2 (ALPN h2)", now_ns)
        return self.push(now_ns)

    cdef Py_ssize_t room(self) noexcept:
        cdef Py_ssize_t most = self.most
        if self.leaving:
            return 0
        if <Py_ssize_t>self.session.peer_streams < most:
            most = <Py_ssize_t>self.session.peer_streams
        return most - self.active

    cdef int begin(self, LoadRequest request, int64_t due_ns, int64_t now_ns) except -1:
        cdef Http2Session session = self.session
        cdef SessionStream stream
        cdef Flight flight
        session.now_ns = now_ns
        stream = session.open()
        if stream is None:
            # Its numbers are used up.
            self.leaving = True
            self.core.ledger.lost(due_ns, now_ns, "goaway", False)
            return self._leave(now_ns)
        flight = <Flight>self.spare.pop() if self.spare else Flight()
        flight.begin(request, due_ns, now_ns)
        stream.owner = flight
        self.active += 1
        self.core.in_flight += 1
        session.send_request(stream, request.head, len(request.body) if request.framed else -1, self.tls is not None, False)
        if request.body:
            self.copy.clear()
            request.put(self.copy, request.body, len(request.body), self.core.serial)
            session.send_data(stream, self.copy.data, self.copy.length)
        session.send_end(stream, None)
        if not self.waiting:
            self.waiting = True
            self.core.unsent.append(self)
        return 0

    cdef int push(self, int64_t now_ns) except -1:
        cdef Http2Session session = self.session
        self.waiting = False
        while self.state == LINE_READY and self.session is session:
            session.pump(BATCH)
            if session.out.length == 0:
                break
            self.transmit(session.out.data, session.out.length, now_ns)
            session.taken()
        return 0

    cdef int received(self, const char* p, Py_ssize_t n, int64_t now_ns) except -1:
        cdef Http2Session session = self.session
        cdef int event
        try:
            session.feed(p, n, now_ns)
            while self.session is session and self.state == LINE_READY:
                event = session.next()
                if event == H2_NONE:
                    break
                self._event(session, event, now_ns)
        except ConnectionFault as error:
            return self.broken(f"protocol: {error}", now_ns)
        self.push(now_ns)
        return self._leave(now_ns)

    cdef int _event(self, Http2Session session, int event, int64_t now_ns) except -1:
        cdef SessionStream stream = session.stream
        cdef Flight flight
        if event == H2_SETTINGS:
            return self.offer()
        if event == H2_GOAWAY:
            self.leaving = True
            for stream in list(session.streams.values()):
                if stream.number > session.goaway_last:
                    self._gone(stream, "goaway", False, now_ns)
            return 0
        if event == H2_DATA:
            if stream.owner is not None:
                flight = <Flight?>stream.owner
                flight.data(self.core.ledger, session.data, session.size, now_ns)
            return session.credit(stream, session.size)
        if stream is None or stream.owner is None:
            return 0
        flight = <Flight?>stream.owner
        if event == H2_HEAD:
            if session.head.status >= 200:
                flight.head(session.head)
        elif event == H2_END:
            self._free(stream, flight)
            self.served = True
            flight.end(self.core.ledger, now_ns)
            if stream.state != ST_CLOSED:
                session.reset(stream, E_CANCEL)      # it was answered before its body had left
            self.offer()
        elif event == H2_RESET:
            self._gone(stream, f"stream reset: {kinds.error_name(session.code)}", False, now_ns)
        return 0

    cdef int _free(self, SessionStream stream, Flight flight) except -1:
        stream.owner = None
        self.active -= 1
        self.core.in_flight -= 1
        if len(self.spare) < MOST_SPARE:
            self.spare.append(flight)
        return 0

    cdef int _gone(self, SessionStream stream, str kind, bint waited, int64_t now_ns) except -1:
        cdef Flight flight
        if stream.owner is None:
            return 0
        flight = <Flight?>stream.owner
        self._free(stream, flight)
        self.core.ledger.lost(flight.due_ns, now_ns, kind, waited)
        return self.offer()

    cdef int _leave(self, int64_t now_ns) except -1:
        """Make a new connection once the last answer of one that takes no more requests has come."""
        if self.leaving and self.active == 0 and self.state == LINE_READY:
            return self.broken("goaway", now_ns)
        return 0

    cdef int overdue(self, int64_t before_ns, int64_t now_ns) except -1:
        cdef Http2Session session = self.session
        cdef SessionStream stream
        if self.state == LINE_CONNECTING or self.state == LINE_HANDSHAKE:
            return LoadLine.overdue(self, before_ns, now_ns)
        if self.active == 0 or self.state != LINE_READY:
            return 0
        for stream in list(session.streams.values()):
            if stream.owner is not None and (<Flight?>stream.owner).sent_ns < before_ns:
                session.reset(stream, E_CANCEL)
                self._gone(stream, "timeout", True, now_ns)
        self.push(now_ns)
        return self._leave(now_ns)

    cdef int abandon(self, str kind, bint waited, int64_t now_ns) except -1:
        cdef SessionStream stream
        if self.session is not None:
            for stream in self.session.drop():
                if stream.owner is not None:
                    self._gone(stream, kind, waited, now_ns)
            self.session = None
        return 0
