"""Event-stream encoding: data may hold line breaks, names and ids may not."""

from libc.string cimport memchr

from headgate_engine.wire.buffer cimport ByteBuffer


cdef int _check(str what, bytes value) except -1:
    if b"\n" in value or b"\r" in value or b"\0" in value:
        raise ValueError(f"an event's {what} cannot hold a line break")
    return 0


cdef int append_event(ByteBuffer out, const char* data, Py_ssize_t n, bytes event, bytes event_id) except -1:
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t stop
    cdef const char* lf
    if event is not None:
        _check("name", event)
        out.append(b"event: ", 7)
        out.append(event, len(event))
        out.append_byte(10)
    if event_id is not None:
        _check("id", event_id)
        out.append(b"id: ", 4)
        out.append(event_id, len(event_id))
        out.append_byte(10)
    if memchr(data, 13, n) != NULL:
        # A lone CR would end a line for the reader: written as a line break, it stays one.
        normal = data[:n].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return append_event(out, normal, len(normal), None, None)
    while True:
        lf = <const char*>memchr(data + at, 10, n - at)
        stop = n if lf == NULL else lf - data
        out.append(b"data: ", 6)
        out.append(data + at, stop - at)
        out.append_byte(10)
        if lf == NULL:
            break
        at = stop + 1
    return out.append_byte(10)


def encode_event(bytes data, str event=None, str id=None):
    """One event as bytes; ValueError when `event` or `id` holds a line break."""
    cdef ByteBuffer out = ByteBuffer()
    append_event(out, data, len(data), None if event is None else event.encode(), None if id is None else id.encode())
    return out.take()


def encode_comment(str text=""):
    """A comment: keeps a connection alive without meaning anything."""
    raw = text.encode()
    _check("comment", raw)
    return b": " + raw + b"\n\n"
