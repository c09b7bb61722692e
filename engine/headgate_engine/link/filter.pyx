"""What stands between a request and its client; see filter.pxd. By itself, it passes everything on."""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport ServerStream

from libc.stdint cimport int64_t


cdef class StreamFilter(ServerStream):
    cdef int request_data(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("StreamFilter.request_data")

    cdef int request_end(self, MessageHead trailers) except -1:
        raise NotImplementedError("StreamFilter.request_end")

    cdef int client_writable(self) except -1:
        raise NotImplementedError("StreamFilter.client_writable")

    cdef bint drained(self) noexcept:
        return self.inner is None or self.inner.drained()

    cdef bint changes_response(self) noexcept:
        return self.inner is not None and self.inner.changes_response()

    cdef int bypass(self) except -1:
        return 0 if self.inner is None else self.inner.bypass()

    cdef int close(self) except -1:
        cdef StreamFilter inner = self.inner
        self.inner = None
        return 0 if inner is None else inner.close()

    # -- ServerStream --------------------------------------------------------------------------------------------------
    cdef int start_response(self, MessageHead head, int size, int64_t length) except -1:
        self.begun = True
        return self.outer.start_response(head, size, length)

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        return self.outer.send_body(p, n)

    cdef int end_response(self, MessageHead trailers) except -1:
        return self.outer.end_response(trailers)

    cdef int send_informational(self, int status, MessageHead head) except -1:
        return self.outer.send_informational(status, head)

    cdef int send_continue(self) except -1:
        return self.outer.send_continue()

    cdef int flush(self) except -1:
        return self.outer.flush()

    cdef bint congested(self) noexcept:
        return self.outer.congested()

    cdef bint flush_follows(self) noexcept:
        return self.outer.flush_follows()

    cdef int pause_request(self) except -1:
        return self.outer.pause_request()

    cdef int resume_request(self) except -1:
        return self.outer.resume_request()

    cdef int finished(self, bint clean) except -1:
        return self.outer.finished(clean)

    cdef int start_tunnel(self) except -1:
        return self.outer.start_tunnel()

    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        return self.outer.send_tunnel_data(p, n)

    cdef int abort(self) except -1:
        return self.outer.abort()

    cdef int close_after(self) except -1:
        return self.outer.close_after()
