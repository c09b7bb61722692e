# Answers the engine gives by itself. The texts, statuses and labels are in headgate/pipeline/replies.py, which hands
# one Reply per id to the worker.

from headgate_engine.link.contract cimport CONNECT_FORBIDDEN, CONNECT_TIMED_OUT, CONNECT_UNRESOLVED

cdef enum ReplyId:
    REPLY_INVALID_REQUEST = 0
    REPLY_LISTENER_NOT_FOUND = 1
    REPLY_ROUTE_NOT_FOUND = 2
    REPLY_METHOD_NOT_ALLOWED = 3
    REPLY_NO_VALID_BACKENDS = 4
    REPLY_BODY_TOO_LARGE = 5
    REPLY_REQUEST_TIMEOUT = 6
    REPLY_UPSTREAM_TIMEOUT = 7
    REPLY_UPSTREAM_FAILED = 8
    REPLY_UPSTREAM_PROTOCOL = 9
    REPLY_INTERNAL = 10
    REPLY_UPGRADE_REFUSED = 11
    REPLY_MISDIRECTED = 12
    REPLY_RESPONSE_TOO_LARGE = 13
    REPLY_NO_HEALTHY_BACKENDS = 14
    REPLY_DOUBTFUL_PATH = 15
    REPLY_INVALID_BACKEND = 16
    REPLY_BIND_NOT_FOUND = 17
    REPLY_UNRESOLVED = 18
    REPLY_DESTINATION_REFUSED = 19
    REPLY_PROCESSING_FAILED = 20
    REPLY_TOO_MANY_HOPS = 21
    REPLY_COUNT = 22

# The answer to a request whose backend cannot be reached. `failure`: ConnectFailure.
cdef inline int failure_reply(int failure) noexcept:
    if failure == CONNECT_TIMED_OUT:
        return REPLY_UPSTREAM_TIMEOUT
    if failure == CONNECT_UNRESOLVED:
        return REPLY_UNRESOLVED
    return REPLY_DESTINATION_REFUSED if failure == CONNECT_FORBIDDEN else REPLY_UPSTREAM_FAILED
