"""HTTP answers as gRPC sees them: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, "Responses"."""

from headgate_engine.context.headers cimport H_CONTENT_TYPE, MessageHead
from headgate_engine.context.request cimport Reply
from headgate_engine.wire.scan cimport same_lower

cdef enum:
    GRPC_LENGTH = 16            # of application/grpc

# HTTP status to gRPC status code; every other failure is UNKNOWN.
CODES = {400: 13, 401: 16, 403: 7, 404: 12, 407: 16, 429: 14, 502: 14, 503: 14, 504: 14}
UNKNOWN = 2
UNAVAILABLE = 14
NO_BACKEND = b"no valid backends"


cdef bint is_grpc(MessageHead request) noexcept:
    # application/grpc-web is an ordinary HTTP exchange (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md).
    cdef int at = request.find_id(H_CONTENT_TYPE, 0)
    cdef const char* kind
    if at < 0 or request.spans[at].value_len < GRPC_LENGTH:
        return False
    kind = request.data + request.spans[at].value_off
    if not same_lower(kind, b"application/grpc", GRPC_LENGTH):
        return False
    return request.spans[at].value_len == GRPC_LENGTH or kind[GRPC_LENGTH] in (c'+', c';', c' ', c'\t')


def percent_encoded(bytes message):
    """Escape bytes that grpc-message cannot contain as %XX: everything but printable ASCII, and the percent sign."""
    return b"".join(b"%%%02X" % c if c < 32 or c > 126 or c == 37 else b"%c" % c for c in message)


cdef Reply grpc_reply(Reply reply):
    """The same answer with status 200, grpc-status and grpc-message, and without a body; fields of the reply stay."""
    if reply.status < 300 or reply.reason == "DirectResponse":
        return reply
    code = UNAVAILABLE if reply.body.startswith(NO_BACKEND) else CODES.get(reply.status, UNKNOWN)
    fields = [(name, value) for name, value in reply.headers if name != b"content-type"]
    fields.append((b"content-type", b"application/grpc"))
    fields.append((b"grpc-status", b"%d" % code))
    fields.append((b"grpc-message", percent_encoded(reply.body)))
    return Reply(200, b"", tuple(fields), reply.reason)


cdef int grpc_status(MessageHead response, MessageHead trailers) except -2:
    """Status of a gRPC response by its head or trailers; GRPC_NONE for other responses, GRPC_LATER before trailers."""
    if not is_grpc(response):
        return GRPC_NONE
    text = response.get("grpc-status")
    if text is None and trailers is not None:
        text = trailers.get("grpc-status")
    if text is None:
        return GRPC_LATER
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else UNKNOWN
