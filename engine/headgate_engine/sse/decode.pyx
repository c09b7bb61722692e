# cython: boundscheck=False
"""Event-stream decoding. boundscheck is off: all access is to C memory of known length."""

from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp

from headgate_engine.wire.buffer cimport ByteBuffer

from typing import NamedTuple

DEFAULT_MAX_EVENT = 8 * 1024 * 1024
# Limit of reconnection times, in ms: the largest integer that a JSON number holds exactly.
MAX_RETRY = (1 << 53) - 1
cdef int64_t most_retry = MAX_RETRY


class SseError(ValueError):
    """An event is longer than the limit. The decoder cannot be used afterwards."""


class Event(NamedTuple):
    """One event. event: `message` if the stream names none. id: None if this event sets none. retry: ms."""

    event: str
    data: bytes
    id: str | None
    retry: int | None


cdef class SseDecoder:
    """Decoder of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

    Bytes may be split anywhere; CR, LF and CR LF end lines. A CR ends its line at once: an event does not wait for the
    byte behind it. max_event: bytes of one block without its blank line; also the most that is buffered.
    """

    def __init__(self, Py_ssize_t max_event=DEFAULT_MAX_EVENT):
        if max_event < 1:
            raise ValueError("a limit is a positive number")
        self.max_event = max_event

    def __cinit__(self):
        self.max_event = DEFAULT_MAX_EVENT
        self.buffer = ByteBuffer()
        self.joined = ByteBuffer()
        self.lf = -1
        self.first_line = True
        self.last_id = b""
        self._forget()

    cdef void _forget(self) noexcept:
        """Reset the fields for the next block."""
        self.complete = self.in_event = self.has_event = False
        self.event_span.length = self.id_span.length = -1
        self.data_lines = 0
        self.retry = -1
        self.raw = self.data = self.event = self.id = NULL
        self.raw_len = self.data_len = self.event_len = self.id_len = 0

    cdef int feed(self, const char* p, Py_ssize_t n) except -1:
        cdef Py_ssize_t gone = self.start
        if self.failed:
            raise SseError("event is too long")
        if self.complete:
            self._forget()
        if self.lf == self.buffer.length:
            self.lf = -1
        if gone:
            self.buffer.consume(gone)
            self.start = 0
            self.line -= gone
            self.searched -= gone
            self.lf = self.lf - gone if self.lf >= gone else -1
        return self.buffer.append(p, n)

    cdef bint next(self) except -1:
        cdef Py_ssize_t stop, after, content
        if self.failed:
            raise SseError("event is too long")
        if self.complete:
            self._forget()
        while self.line < self.buffer.length:
            if self.after_cr:
                # The LF of a CR LF that two chunks split.
                self.after_cr = False
                if self.buffer.data[self.line] == 10:
                    self.line += 1
                    self.searched = self.line
                    if self.start == self.line - 1:
                        self._finish(self.start, self.line)
                        return True
                    continue
            stop = self._line_end()
            if stop < 0:
                break
            after = stop + 1
            if self.buffer.data[stop] == 13:
                if after == self.buffer.length:
                    self.after_cr = True
                elif self.buffer.data[after] == 10:
                    after += 1
            content = self.line
            if self.first_line:
                self.first_line = False
                if stop - content >= 3 and memcmp(self.buffer.data + content, b"\xef\xbb\xbf", 3) == 0:
                    content += 3
            self.line = self.searched = after
            if content == stop:
                self._finish(content, after)
                return True
            if self.buffer.data[content] != 58:
                self._field(content, stop)
            elif not self.in_event:
                # A comment between events is a block of its own: it keeps a connection alive, so it must not wait for
                # an event.
                self._finish(stop, after)
                return True
        self._check(self.buffer.length - self.start)
        return False

    cdef Py_ssize_t _line_end(self) noexcept:
        """Return the offset of the CR or LF that ends the current line, -1 if it has not arrived yet.

        The next LF is remembered, so that a stream of CRs does not search for it again with every line.
        """
        cdef const char* p = self.buffer.data
        cdef Py_ssize_t n = self.buffer.length
        cdef const char* found
        if self.lf < self.line:
            found = <const char*>memchr(p + self.searched, 10, n - self.searched)
            self.lf = n if found == NULL else found - p
            self.looked_at += self.lf - self.searched + (found != NULL)
        found = <const char*>memchr(p + self.searched, 13, self.lf - self.searched)
        if found != NULL:
            self.looked_at += found - p - self.searched + 1
            return found - p
        self.looked_at += self.lf - self.searched
        self.searched = self.lf
        return self.lf if self.lf < n else -1

    cdef int _check(self, Py_ssize_t size) except -1:
        if size > self.max_event:
            self.failed = True
            self._forget()
            raise SseError("event is too long")
        return 0

    cdef int _field(self, Py_ssize_t at, Py_ssize_t stop) except -1:
        cdef const char* p = self.buffer.data + at
        cdef Py_ssize_t n = stop - at
        cdef const char* colon = <const char*>memchr(p, 58, n)
        cdef Py_ssize_t name = n if colon == NULL else colon - p
        cdef Py_ssize_t value = n if colon == NULL else name + 1
        cdef int64_t number = 0
        self.in_event = True
        if value < n and p[value] == 32:
            value += 1
        if name == 4 and memcmp(p, b"data", 4) == 0:
            self._add_data(at + value, stop)
        elif name == 5 and memcmp(p, b"event", 5) == 0:
            self.event_span.at = at + value - self.start
            self.event_span.length = n - value
        elif name == 2 and memcmp(p, b"id", 2) == 0:
            if memchr(p + value, 0, n - value) == NULL:
                self.id_span.at = at + value - self.start
                self.id_span.length = n - value
        elif name == 5 and memcmp(p, b"retry", 5) == 0 and value < n:
            while value < n:
                if not 48 <= p[value] <= 57:
                    return 0
                number = number * 10 + (p[value] - 48)
                if number > most_retry:
                    number = most_retry
                value += 1
            self.retry = number
        return 0

    cdef int _add_data(self, Py_ssize_t at, Py_ssize_t stop) except -1:
        """Add one data line. A single line stays in the buffer; several are joined in another one."""
        if self.data_lines == 0:
            self.data_span.at = at - self.start
            self.data_span.length = stop - at
        else:
            if self.data_lines == 1:
                self.joined.clear()
                self.joined.append(self.buffer.data + self.start + self.data_span.at, self.data_span.length)
            self.joined.append_byte(10)
            self.joined.append(self.buffer.data + at, stop - at)
        if self.data_lines < 2:
            self.data_lines += 1
        return 0

    cdef int _finish(self, Py_ssize_t content_end, Py_ssize_t next_line) except -1:
        """Make the block that ends before `next_line` the current one."""
        cdef const char* block = self.buffer.data + self.start
        self._check(content_end - self.start)
        self.raw = block
        self.raw_len = next_line - self.start
        self.has_event = self.data_lines > 0
        if self.data_lines == 1:
            self.data, self.data_len = block + self.data_span.at, self.data_span.length
        elif self.data_lines:
            self.data, self.data_len = self.joined.data, self.joined.length
        if self.event_span.length > 0:
            self.event, self.event_len = block + self.event_span.at, self.event_span.length
        if self.id_span.length >= 0:
            self.id, self.id_len = block + self.id_span.at, self.id_span.length
            self.last_id = self.id[:self.id_len]
        self.start = next_line
        self.complete = True
        return 0

    @property
    def last_event_id(self):
        return self.last_id.decode("utf-8", "replace")

    def split(self, bytes chunk not None):
        """Return the blocks that these bytes complete: raw bytes and the event that the block dispatches, or None.

        All raw bytes in order, then rest(), are the stream byte for byte. Blocks without an event are comments between
        events, blank lines, and fields without data. If two chunks split a CR LF, its LF is a block of its own. A byte
        order mark belongs to the first block, so nothing may be inserted in front of that. Raises SseError past the
        limit.
        """
        found = []
        self.feed(chunk, len(chunk))
        while self.next():
            event = None
            if self.has_event:
                event = Event(
                    "message" if self.event == NULL else self.event[:self.event_len].decode("utf-8", "replace"),
                    self.data[:self.data_len],
                    None if self.id == NULL else self.id[:self.id_len].decode("utf-8", "replace"),
                    None if self.retry < 0 else self.retry)
            found.append((self.raw[:self.raw_len], event))
        return found

    def decode(self, bytes chunk not None):
        """Return the events that these bytes complete, in order. Raises SseError past the limit."""
        return [event for _raw, event in self.split(chunk) if event is not None]

    def rest(self):
        """Return the bytes behind the last block; a filter passes them on when the stream ends."""
        return self.buffer.data[self.start:self.buffer.length] if self.buffer.length > self.start else b""
