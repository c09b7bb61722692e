"""A connection of HTTP/2 for Python callers: tests, oracles, fuzzing."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead, SPAN_DROPPED
from headgate_engine.http2.session cimport (
    H2_DATA, H2_END, H2_GOAWAY, H2_HEAD, H2_NONE, H2_PONG, H2_REFUSED, H2_RESET, Http2Session)

from headgate_engine.http2.stream cimport SessionStream

from libc.stdint cimport int64_t, uint32_t

from headgate_engine.http2.heads import request_of, response_of, trailers_of
from headgate_engine.http2.limits import Http2Limits

cdef enum:
    PUMPED = 65536


cdef list fields_of(MessageHead head):
    found = []
    for i in range(head.count):
        if not head.spans[i].flags & SPAN_DROPPED:
            found.append((head.data[head.spans[i].name_off:head.spans[i].name_off + head.spans[i].name_len],
                          head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len]))
    return found


cdef class Http2Peer:
    """One side of a connection. Times are seconds; events are tuples that begin with their name."""

    def __init__(self, bint server, limits=None, bint extended=False):
        self.core = Http2Session(server, Http2Limits() if limits is None else limits, extended)
        self.known = {}
        self.now_ns = monotonic_ns()
        self.core.begin(self.now_ns)

    def receive(self, bytes data not None, double later=0.0):
        """Return the events of the bytes; ConnectionFault for what ends the connection: `heard` has those before it.

        later: seconds that have passed.
        """
        cdef Http2Session core = self.core
        cdef SessionStream stream
        cdef int event
        found = self.heard = []
        self.now_ns += <int64_t>(later * 1e9)
        core.feed(data, len(data), self.now_ns)
        while True:
            event = core.next()
            if event == H2_NONE:
                return found
            stream = core.stream
            if event == H2_HEAD:
                self.known[stream.number] = stream
                head = core.head
                if core.server:
                    found.append(("head", stream.number, head.method, head.target, head.authority, fields_of(head)))
                else:
                    found.append(("head", stream.number, head.status, fields_of(head)))
            elif event == H2_DATA:
                found.append(("data", stream.number, core.data[:core.size]))
                core.credit(stream, core.size)
            elif event == H2_END:
                found.append(("end", stream.number, None if core.trailers is None else fields_of(core.trailers)))
            elif event == H2_RESET:
                found.append(("reset", stream.number, core.code, core.detail))
            elif event == H2_REFUSED:
                found.append(("refused", stream.number, core.status, core.detail))
            elif event == H2_GOAWAY:
                found.append(("goaway", core.goaway_last, core.code))
            else:
                found.append(("pong",) if event == H2_PONG else ("settings",))

    def fault(self, int code, str detail not None):
        """The connection ends with this error."""
        self.core.fault(code, detail)

    def output(self):
        """Return what is to be written."""
        cdef bytes found
        self.core.pump(PUMPED)
        found = bytes(self.core.out)
        self.core.taken()
        return found

    def block(self, bint blocked):
        """The socket takes nothing."""
        self.core.blocked = blocked

    # -- streams -------------------------------------------------------------------------------------------------------
    cdef SessionStream _known(self, int number):
        return <SessionStream?>self.known[number]

    def request(self, fields not None, bint upgrade=False):
        """Open a stream; (name, value) pairs with pseudo-header fields. Return its number, None without room."""
        cdef MessageHead head = request_of(fields)
        cdef SessionStream stream = self.core.open()
        if stream is None:
            return None
        self.known[stream.number] = stream
        self.core.send_request(stream, head, head.content_length, False, upgrade)
        return stream.number

    def respond(self, int number, fields not None):
        cdef MessageHead head = response_of(fields)
        self.core.send_response(self._known(number), head, head.content_length)

    def send(self, int number, bytes data not None):
        self.core.send_data(self._known(number), data, len(data))

    def end(self, int number, trailers=None):
        self.core.send_end(self._known(number), None if trailers is None else trailers_of(trailers))

    def reset(self, int number, uint32_t code):
        self.core.reset(self._known(number), code)

    def pause(self, int number):
        self._known(number).paused = True

    def resume(self, int number):
        """Return what came meanwhile, and whether the end did."""
        cdef SessionStream stream = self._known(number)
        stream.paused = False
        return self.core.release(stream), stream.held_end

    def state(self, int number):
        return self._known(number).state_name

    def waiting(self, int number):
        """Bytes of DATA that wait."""
        return self._known(number).waiting()

    # -- the connection ------------------------------------------------------------------------------------------------
    @property
    def open_streams(self):
        return len(self.core.streams)

    def notice(self):
        self.core.notice()

    def goaway(self, uint32_t code, str detail not None=""):
        self.core.goaway(code, detail)

    def ping(self):
        self.core.ping()
