"""A connection of HTTP/2 without a socket, and its parts: frames, header blocks and tables."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport HeaderSpan, MessageHead, SPAN_DROPPED, new_head
from headgate_engine.http2.frames cimport (
    begin_headers, end_headers, put_data, put_goaway, put_ping, put_reset, put_settings, put_window_update)
from headgate_engine.http2.heads cimport (
    accept_request, accept_response, accept_trailers, write_request, write_response)
from headgate_engine.http2.hpack cimport HpackDecoder, HpackEncoder
from headgate_engine.http2.session cimport (
    H2_DATA, H2_END, H2_GOAWAY, H2_HEAD, H2_NONE, H2_PONG, H2_REFUSED, H2_RESET, Http2Session)

from headgate_engine.http2.stream cimport SessionStream
from headgate_engine.http2.table cimport DynamicTable, static_search
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t

from headgate_engine.http2 import states
from headgate_engine.http2.limits import Http2Limits

cdef enum:
    PUMPED = 65536
    DEFAULT_FRAME = 16384


cdef list fields_of(MessageHead head):
    found = []
    for i in range(head.count):
        if not head.spans[i].flags & SPAN_DROPPED:
            found.append((head.data[head.spans[i].name_off:head.spans[i].name_off + head.spans[i].name_len],
                          head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len]))
    return found


cdef MessageHead filled(fields):
    """Return a head with (name, value) pairs as a decoder leaves them."""
    cdef MessageHead head = new_head()
    cdef HeaderSpan span
    cdef bytes name, value
    for name, value in fields:
        if name is None or value is None:
            raise TypeError("a field needs a name and a value")
        if len(name) > 65535:
            raise ValueError("field name is too long")
        span.name_off = head._put(name, len(name))
        span.name_len = <unsigned short>len(name)
        span.value_off = head._put(value, len(value))
        span.value_len = <uint32_t>len(value)
        span.id = span.flags = 0
        head.push_span(span)
    return head


def request_of(fields not None, bint extended=False):
    """Return the head of a request with these (name, value) pairs; StreamFault if it is malformed."""
    cdef MessageHead head = filled(fields)
    accept_request(head, extended)
    return head


def response_of(fields not None):
    """The same for a response."""
    cdef MessageHead head = filled(fields)
    accept_response(head)
    return head


def trailers_of(fields not None):
    """The same for trailers."""
    cdef MessageHead head = filled(fields)
    accept_trailers(head)
    return head


cdef class Http2Peer:
    """One side of a connection. Times are seconds; events are tuples that begin with their name."""

    cdef Http2Session core
    cdef dict known                  # number -> SessionStream, also of those that are over
    cdef readonly list heard         # events of the last receive()
    cdef int64_t now_ns

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
        return states.STREAM_STATES[self._known(number).state]

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


class Http2FrameWriter:
    """Frames as bytes."""

    @staticmethod
    def data(uint32_t stream, bytes data not None, bint end=False):
        cdef ByteBuffer out = ByteBuffer()
        put_data(out, stream, data, len(data), end)
        return bytes(out)

    @staticmethod
    def headers(uint32_t stream, bytes block not None, bint end=False, uint32_t max_frame=DEFAULT_FRAME):
        cdef ByteBuffer out = ByteBuffer()
        cdef Py_ssize_t at = begin_headers(out)
        if max_frame == 0:
            raise ValueError("a frame needs a length")
        out.append(block, len(block))
        end_headers(out, at, stream, end, max_frame)
        return bytes(out)

    @staticmethod
    def reset(uint32_t stream, uint32_t code):
        cdef ByteBuffer out = ByteBuffer()
        put_reset(out, stream, code)
        return bytes(out)

    @staticmethod
    def window_update(uint32_t stream, uint32_t increment):
        cdef ByteBuffer out = ByteBuffer()
        put_window_update(out, stream, increment)
        return bytes(out)

    @staticmethod
    def ping(bytes eight not None, bint ack=False):
        cdef ByteBuffer out = ByteBuffer()
        if len(eight) != 8:
            raise ValueError("a PING has eight bytes")
        put_ping(out, eight, ack)
        return bytes(out)

    @staticmethod
    def goaway(uint32_t last, uint32_t code, bytes detail not None=b""):
        cdef ByteBuffer out = ByteBuffer()
        put_goaway(out, last, code, detail)
        return bytes(out)

    @staticmethod
    def settings(tuple values=None):
        """`values`: ((number, value), ...); None acknowledges."""
        cdef ByteBuffer out = ByteBuffer()
        put_settings(out, values)
        return bytes(out)


def block_of(HpackEncoder encoder not None, MessageHead head not None, int64_t length=-1, bint upgrade=False):
    """Return the header block of a request (to an http server) or, if it has a status, of a response."""
    cdef ByteBuffer out = ByteBuffer()
    if head.status:
        write_response(encoder, out, head, length)
    else:
        write_request(encoder, out, head, length, False, upgrade)
    return bytes(out)


def set_encoder_limit(HpackEncoder encoder not None, uint32_t limit):
    """The peer allows a table of this size."""
    encoder.set_limit(limit)


def set_decoder_limit(HpackDecoder decoder not None, uint32_t limit):
    """The peer has acknowledged this size of the table."""
    decoder.set_limit(limit)


def resize(DynamicTable table not None, uint32_t limit):
    table.set_limit(limit)


def find_static(bytes name not None, bytes value not None):
    """Return the index of a field in the static table (0: none), and whether the value is the same too."""
    cdef bint whole = False
    cdef uint32_t index = static_search(name, len(name), value, len(value), &whole)
    return index, whole
