"""Streamed replies in another format; see converter.pxd and converter.pyi."""

from headgate_engine.llm.eventstream cimport EventStreamDecoder
from headgate_engine.llm.translate.readers cimport EventReader
from headgate_engine.sse.decode cimport SseDecoder
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.llm.eventstream import EventStreamError
from headgate_engine.sse.decode import SseError


cdef class StreamConverter:
    def __cinit__(self, EventReader reader not None, bint framed):
        self.reader = reader
        self.writer = reader.writer
        if framed:
            self.frames = EventStreamDecoder()
        else:
            self.events = SseDecoder()

    @property
    def untold(self):
        return self.writer.untold

    @property
    def usage(self):
        self.reader.count()
        return self.writer.usage

    @property
    def model(self):
        return self.writer.answered

    @property
    def failed(self):
        return (self.writer.fault_message or "the stream is broken") if self.reader.failed else None

    @property
    def finished(self):
        return self.writer.finished

    def event(self, str name, bytes data not None):
        return self.reader.event(name, data)

    def feed(self, bytes chunk not None):
        self._feed(chunk, len(chunk))
        return self.writer.take()

    def end(self, str fault):
        self._end(fault)
        return self.writer.take()

    cdef int feed_into(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        self._feed(p, n)
        return self._take(out)

    cdef int end_into(self, str fault, ByteBuffer out) except -1:
        self._end(fault)
        return self._take(out)

    cdef int _take(self, ByteBuffer out) except -1:
        out.append(self.writer.out.data, self.writer.out.length)
        self.writer.out.clear()
        return 0

    cdef int _feed(self, const char* p, Py_ssize_t n) except -1:
        cdef SseDecoder events = self.events
        cdef EventStreamDecoder frames = self.frames
        cdef EventReader reader = self.reader
        if reader.failed or self.writer.finished:
            return 0
        try:
            if events is None:
                frames.feed(p, n)
                while frames.next():
                    # An event without a type has a name, which is empty.
                    reader.take_event(frames.raw if frames.event.p == NULL else frames.event.p, frames.event.n,
                                      frames.data, frames.data_len)
                return 0
            events.feed(p, n)
            while events.next():
                if events.has_event:
                    reader.take_event(events.event, events.event_len, events.data, events.data_len)
        except (EventStreamError, SseError) as error:
            reader.close(f"the provider's stream is broken: {error}")
        return 0

    cdef int _end(self, str fault) except -1:
        if fault is None and self.events is not None and self.events.start < self.events.buffer.length:
            # Some vendors omit the blank line after the last event.
            self._feed(b"\n\n", 2)
        elif fault is None and self.frames is not None and self.frames.left() and not self.writer.finished:
            fault = "the provider's stream ended inside of a frame"
        return self.reader.close(fault)
