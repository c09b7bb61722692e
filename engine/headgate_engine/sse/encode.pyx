"""Event-stream encoding. Data may contain line breaks, names and ids may not."""

from libc.stdint cimport int64_t
from libc.string cimport memchr

from headgate_engine.wire.buffer cimport ByteBuffer


cdef int _check(str what, bytes value) except -1:
    # Clients ignore an id with a NUL. In a name it is useless as well.
    if b"\n" in value or b"\r" in value or b"\0" in value:
        raise ValueError(f"an event's {what} cannot hold a line break or NUL")
    return 0


cdef int _append_data(ByteBuffer out, const char* data, Py_ssize_t n) except -1:
    """Append each line as a data field. CR, LF and CR LF all end lines for the client."""
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t stop
    cdef const char* found
    cdef const char* cr = <const char*>memchr(data, 13, n)
    if cr != NULL:
        normal = data[:n].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return _append_data(out, normal, len(normal))
    while True:
        found = <const char*>memchr(data + at, 10, n - at)
        stop = n if found == NULL else found - data
        out.append(b"data: ", 6)
        out.append(data + at, stop - at)
        out.append_byte(10)
        if found == NULL:
            return 0
        at = stop + 1


cdef int append_event(ByteBuffer out, const char* data, Py_ssize_t n, bytes event, bytes event_id) except -1:
    if event is not None:
        _check("name", event)
    if event_id is not None:
        _check("id", event_id)
    if event is not None:
        out.append(b"event: ", 7)
        out.append(event, len(event))
        out.append_byte(10)
    if event_id is not None:
        out.append(b"id: ", 4)
        out.append(event_id, len(event_id))
        out.append_byte(10)
    _append_data(out, data, n)
    return out.append_byte(10)


cdef int append_retry(ByteBuffer out, int64_t retry_ms) except -1:
    if retry_ms < 0:
        raise ValueError("a reconnection time is not negative")
    out.append(b"retry: ", 7)
    out.append_uint(<unsigned long long>retry_ms)
    return out.append_byte(10)


def encode_event(bytes data not None, str event=None, str id=None, retry=None):
    """Return one event as bytes. Each line of data becomes a field of its own. retry: ms.

    Raises ValueError if `event` or `id` contains a line break or NUL, or if retry is below 0.
    """
    cdef ByteBuffer out = ByteBuffer()
    if retry is not None:
        append_retry(out, retry)
    append_event(out, data, len(data), None if event is None else event.encode(), None if id is None else id.encode())
    return out.take()


def encode_comment(str text not None=""):
    """Return a comment: keeps a connection alive and has no meaning. Raises ValueError for a line break or NUL."""
    raw = text.encode()
    _check("comment", raw)
    return b": " + raw + b"\n\n"
