"""The codec of HTTP/1.1 without a connection."""

from libc.stdint cimport int64_t, uint32_t

from headgate_engine.context.headers cimport H_UPGRADE, HEAD_CHUNKED, MessageHead, new_head
from headgate_engine.http1.codec cimport Http1Codec
from headgate_engine.http1.head cimport parse_request
from headgate_engine.http1.kinds cimport (
    BODY_CHUNKED, BODY_LENGTH, BODY_NONE, BODY_UNTIL_CLOSE, EV_CLOSED, EV_DATA, EV_END, EV_INFORMATIONAL, EV_NEED_DATA,
    EV_PAUSED, EV_UPGRADED, ROLE_CLIENT, ROLE_SERVER)
from headgate_engine.http1.states cimport S_IDLE
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_drivers import events

SERVER = ROLE_SERVER
CLIENT = ROLE_CLIENT


def _fields_of(MessageHead head):
    return tuple(head.items()) if head is not None else ()


cdef class PythonCodec(Http1Codec):
    """Http1Codec for Python callers: receives bytes and returns events, takes events and returns bytes."""

    cdef bytes given                 # argument of receive(): referenced until it is consumed or copied

    def receive(self, bytes data):
        """Take bytes from the peer; b"" means that it closed its direction.

        Call next_event() afterwards until it returns NeedData or Paused.
        """
        self._keep_rest()       # bytes that the caller has not read with next_event() yet
        self.given = data
        self.feed(data, len(data))

    def next_event(self):
        """Return the next event. Raises RemoteProtocolError if the peer broke the protocol."""
        cdef MessageHead head
        cdef int event = self.next()
        if event == EV_DATA:
            return events.DataEvent(self.data_ptr[:self.data_len])
        if event == EV_END:
            return events.EndOfMessage(_fields_of(self.trailers))
        if event == EV_NEED_DATA:
            return events.NeedData()
        if event == EV_PAUSED:
            return events.Paused()
        if event == EV_CLOSED:
            return events.ConnectionClosed()
        if event == EV_UPGRADED:
            return events.Upgraded(self.leftover())
        head = self.take_head()
        chunked = head.flags & HEAD_CHUNKED != 0
        length = None if head.content_length < 0 else head.content_length
        if head.status:
            kind = events.InformationalResponse if event == EV_INFORMATIONAL else events.ResponseHead
            return kind(head.status, _fields_of(head), head.reason, head.minor_version, length, chunked)
        return events.RequestHead(head.method, head.target, head.authority, _fields_of(head), head.minor_version, length,
                              chunked)

    def send(self, event, bint close=False):
        """Return the bytes of an event. close: close the connection after it.

        Raises LocalProtocolError if the event is not allowed now.
        """
        cdef ByteBuffer out = ByteBuffer()
        cdef MessageHead head = new_head()
        cdef int mode = BODY_NONE
        cdef int64_t length = -1
        cdef bytes reason
        if isinstance(event, (events.RequestHead, events.ResponseHead)):
            if event.chunked:
                mode = BODY_CHUNKED
            elif event.content_length is not None:
                mode, length = BODY_LENGTH, event.content_length
            for name, value in event.headers:
                head.add(name, value)
        if isinstance(event, events.RequestHead):
            head.set_request(event.method, event.target, event.authority)
            self.send_request(out, head, mode, length, head.find_id(H_UPGRADE, 0) >= 0)
        elif isinstance(event, events.ResponseHead):
            head.status = event.status
            reason = event.reason.encode("latin-1")
            head.reason_off, head.reason_len = head._put(reason, len(reason)), <uint32_t>len(reason)
            if 100 <= event.status < 200 and event.status != 101:
                self.send_informational(out, event.status)
            else:
                if mode == BODY_NONE and close:
                    mode = BODY_UNTIL_CLOSE
                self.send_response(out, head, mode, length, close, True)
        elif isinstance(event, events.DataEvent):
            self.send_data(out, event.data, len(event.data))
        elif isinstance(event, events.EndOfMessage):
            for name, value in event.trailers:
                head.add(name, value)
            self.send_end(out, head if event.trailers else None)
        else:
            raise TypeError(f"{event!r} cannot be sent")
        return out.take()

    def next_cycle(self):
        """Start the next message. Raises LocalProtocolError if the connection is not ready for one."""
        self.start_next_cycle()

    @property
    def can_reuse(self):
        return self.reusable()

    @property
    def unread(self):
        """Received bytes that no event has returned yet."""
        return self.buffered()


def bench_parse(bytes data, int times):
    """Parse a request head `times` times, for bench/micro: without the cost of Python calls."""
    cdef MessageHead head
    for _ in range(times):
        head = new_head()
        parse_request(head, data, len(data), 256)


def bench_send_request(bytes data, int times):
    """Write the request with the head `data` `times` times and return it once, for bench/micro."""
    cdef MessageHead head = new_head()
    cdef ByteBuffer out = ByteBuffer()
    cdef Http1Codec codec = Http1Codec(ROLE_CLIENT)
    parse_request(head, data, len(data), 256)
    for _ in range(times):
        out.clear()
        codec.send_state = S_IDLE
        codec.send_request(out, head, BODY_NONE, -1, False)
    return out.take()
