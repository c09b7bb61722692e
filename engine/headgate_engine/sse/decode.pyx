# cython: boundscheck=False
"""Event-stream decoding. boundscheck is off: all access is to C memory of known length."""

from libc.string cimport memchr, memcmp

from headgate_engine.wire.buffer cimport ByteBuffer

from typing import NamedTuple

DEFAULT_MAX_EVENT = 8 * 1024 * 1024


class SseError(ValueError):
    """An event is longer than the limit."""


class Event(NamedTuple):
    """One event. event is `message` when the stream names none; id is None when this event sets none; retry in ms."""

    event: str
    data: bytes
    id: str | None
    retry: int | None


cdef class SseDecoder:
    """Feed bytes, take events. max_event: bytes of one event's lines."""

    def __init__(self, Py_ssize_t max_event=DEFAULT_MAX_EVENT):
        self.max_event = max_event
        self.kept = ByteBuffer()
        self.data = ByteBuffer()
        self.ready = []

    def decode(self, bytes chunk):
        """The events completed by these bytes, in order; SseError past the limit."""
        self.feed(chunk, len(chunk))
        ready, self.ready = self.ready, []
        return ready

    cdef int feed(self, const char* p, Py_ssize_t n) except -1:
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t stop
        cdef const char* lf
        cdef const char* cr
        while at < n:
            if self.after_cr:
                # The LF of a CR LF whose CR ended the line.
                self.after_cr = False
                if p[at] == 10:
                    at += 1
                    continue
            lf = <const char*>memchr(p + at, 10, n - at)
            stop = n if lf == NULL else lf - p
            cr = <const char*>memchr(p + at, 13, stop - at)
            if cr != NULL:
                stop = cr - p
                self.after_cr = True
            if stop == n:
                self.event_size += n - at
                if self.event_size > self.max_event:
                    raise SseError("event is too long")
                self.kept.append(p + at, n - at)
                break
            self.event_size += stop - at
            if self.event_size > self.max_event:
                raise SseError("event is too long")
            if self.kept.length:
                self.kept.append(p + at, stop - at)
                self._line(self.kept.data, self.kept.length)
                self.kept.clear()
            else:
                self._line(p + at, stop - at)
            at = stop + 1
        return 0

    cdef int _line(self, const char* p, Py_ssize_t n) except -1:
        cdef const char* colon
        cdef Py_ssize_t name, value
        if not self.started:
            self.started = True
            if n >= 3 and memcmp(p, b"\xef\xbb\xbf", 3) == 0:
                p += 3
                n -= 3
        if n == 0:
            return self._dispatch()
        colon = <const char*>memchr(p, 58, n)
        if colon == p:
            return 0
        name = n if colon == NULL else colon - p
        value = n if colon == NULL else name + 1
        if value < n and p[value] == 32:
            value += 1
        if name == 4 and memcmp(p, b"data", 4) == 0:
            if self.has_data:
                self.data.append_byte(10)
            self.has_data = True
            self.data.append(p + value, n - value)
        elif name == 5 and memcmp(p, b"event", 5) == 0:
            self.event = p[value:n]
        elif name == 2 and memcmp(p, b"id", 2) == 0:
            if memchr(p + value, 0, n - value) == NULL:
                self.last_id = p[value:n]
                self.id_seen = True
        elif name == 5 and memcmp(p, b"retry", 5) == 0:
            digits = p[value:n]
            if digits.isdigit():
                self.retry = int(digits[:18])
        return 0

    cdef int _dispatch(self) except -1:
        if self.has_data:
            self.ready.append(Event(
                (self.event or b"message").decode("utf-8", "replace"), bytes(self.data),
                self.last_id.decode("utf-8", "replace") if self.id_seen else None, self.retry))
        self.data.clear()
        self.event = None
        self.has_data = self.id_seen = False
        self.retry = None
        self.event_size = 0
        return 0
