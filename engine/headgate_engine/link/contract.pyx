"""Base classes of the seams between connections; every method is the duty of the class that implements it."""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.plan.plans cimport BindPlan

from libc.stdint cimport int64_t


cdef class ServerStream:
    cdef int start_response(self, MessageHead head, int size, int64_t length) except -1:
        raise NotImplementedError("ServerStream.start_response")

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("ServerStream.send_body")

    cdef int end_response(self, MessageHead trailers) except -1:
        raise NotImplementedError("ServerStream.end_response")

    cdef int send_informational(self, int status, MessageHead head) except -1:
        raise NotImplementedError("ServerStream.send_informational")

    cdef int send_continue(self) except -1:
        raise NotImplementedError("ServerStream.send_continue")

    cdef int flush(self) except -1:
        raise NotImplementedError("ServerStream.flush")

    cdef bint congested(self) noexcept:
        return False

    cdef bint flush_follows(self) noexcept:
        return False

    cdef int pause_request(self) except -1:
        raise NotImplementedError("ServerStream.pause_request")

    cdef int resume_request(self) except -1:
        raise NotImplementedError("ServerStream.resume_request")

    cdef int finished(self, bint clean) except -1:
        raise NotImplementedError("ServerStream.finished")

    cdef int start_tunnel(self) except -1:
        raise NotImplementedError("ServerStream.start_tunnel")

    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("ServerStream.send_tunnel_data")

    cdef int abort(self) except -1:
        raise NotImplementedError("ServerStream.abort")

    cdef int close_after(self) except -1:
        raise NotImplementedError("ServerStream.close_after")


cdef class ClientStream:
    cdef int send_head(self, MessageHead head, int size, int64_t length, bint upgrade) except -1:
        raise NotImplementedError("ClientStream.send_head")

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("ClientStream.send_body")

    cdef int send_end(self, MessageHead trailers) except -1:
        raise NotImplementedError("ClientStream.send_end")

    cdef int flush(self) except -1:
        raise NotImplementedError("ClientStream.flush")

    cdef bint congested(self) noexcept:
        return False

    cdef bint reused(self) noexcept:
        return False

    cdef bint unprocessed(self) noexcept:
        return False

    cdef int pause_response(self) except -1:
        raise NotImplementedError("ClientStream.pause_response")

    cdef int resume_response(self) except -1:
        raise NotImplementedError("ClientStream.resume_response")

    cdef int start_tunnel(self) except -1:
        raise NotImplementedError("ClientStream.start_tunnel")

    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("ClientStream.send_tunnel_data")

    cdef int write_eof(self) except -1:
        raise NotImplementedError("ClientStream.write_eof")

    cdef int cancel(self) except -1:
        raise NotImplementedError("ClientStream.cancel")


cdef class RequestSink:
    cdef int start(self) except -1:
        raise NotImplementedError("RequestSink.start")

    cdef int on_request_data(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("RequestSink.on_request_data")

    cdef int on_request_end(self, MessageHead trailers) except -1:
        raise NotImplementedError("RequestSink.on_request_end")

    cdef int on_request_flush(self) except -1:
        raise NotImplementedError("RequestSink.on_request_flush")

    cdef int on_client_writable(self) except -1:
        raise NotImplementedError("RequestSink.on_client_writable")

    cdef int on_client_eof(self) except -1:
        raise NotImplementedError("RequestSink.on_client_eof")

    cdef int on_client_gone(self) except -1:
        raise NotImplementedError("RequestSink.on_client_gone")

    cdef int on_request_refused(self, int status, str detail) except -1:
        raise NotImplementedError("RequestSink.on_request_refused")

    cdef int on_client_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("RequestSink.on_client_tunnel_data")

    cdef int on_tunnel_end(self, str detail) except -1:
        raise NotImplementedError("RequestSink.on_tunnel_end")


cdef class ResponseSink:
    cdef int on_connected(self, ClientStream stream) except -1:
        raise NotImplementedError("ResponseSink.on_connected")

    cdef int on_connect_failed(self, int failure, str detail) except -1:
        raise NotImplementedError("ResponseSink.on_connect_failed")

    cdef int on_refused(self, str detail) except -1:
        return self.on_connect_failed(CONNECT_FAILED, detail)

    cdef int on_informational(self, MessageHead head) except -1:
        raise NotImplementedError("ResponseSink.on_informational")

    cdef int on_response_head(self, MessageHead head) except -1:
        raise NotImplementedError("ResponseSink.on_response_head")

    cdef int on_response_data(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("ResponseSink.on_response_data")

    cdef int on_response_end(self, MessageHead trailers) except -1:
        raise NotImplementedError("ResponseSink.on_response_end")

    cdef int on_response_flush(self) except -1:
        raise NotImplementedError("ResponseSink.on_response_flush")

    cdef int on_upgraded(self) except -1:
        raise NotImplementedError("ResponseSink.on_upgraded")

    cdef int on_upstream_writable(self) except -1:
        raise NotImplementedError("ResponseSink.on_upstream_writable")

    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        raise NotImplementedError("ResponseSink.on_upstream_failed")

    cdef int on_upstream_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        raise NotImplementedError("ResponseSink.on_upstream_tunnel_data")

    cdef int on_upstream_eof(self) except -1:
        raise NotImplementedError("ResponseSink.on_upstream_eof")


cdef class RequestFactory:
    cdef RequestSink new_request(
            self, ServerStream stream, object connection, str peer, MessageHead head, BindPlan plan, int64_t now_ns):
        raise NotImplementedError("RequestFactory.new_request")


cdef class ClientConnection:
    cdef int capacity(self) noexcept:
        return 0

    cdef ClientStream begin_stream(self, ResponseSink sink):
        raise NotImplementedError("ClientConnection.begin_stream")

    cdef bint no_pending_input(self) except -1:
        raise NotImplementedError("ClientConnection.no_pending_input")

    cdef int keep_until(self, int64_t deadline_ns) except -1:
        raise NotImplementedError("ClientConnection.keep_until")

    cdef int close(self) except -1:
        raise NotImplementedError("ClientConnection.close")


cdef class ConnectionOwner:
    cdef int connection_opened(self, ClientConnection connection) except -1:
        raise NotImplementedError("ConnectionOwner.connection_opened")

    cdef int connection_free(self, ClientConnection connection) except -1:
        raise NotImplementedError("ConnectionOwner.connection_free")

    cdef int connection_closed(self, ClientConnection connection) except -1:
        raise NotImplementedError("ConnectionOwner.connection_closed")

    cdef bint wanted(self) noexcept:
        return False


cdef class UpstreamProtocol:
    cdef ClientConnection new_connection(self, ConnectionOwner owner):
        raise NotImplementedError("UpstreamProtocol.new_connection")
