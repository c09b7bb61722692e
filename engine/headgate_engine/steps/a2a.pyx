"""`a2a`: the calls to an agent.

Methods of JSON-RPC are read from the body, those of the HTTP+JSON binding from method and path. Sources:
https://a2a-protocol.org/v0.3.0/specification/, https://a2a-protocol.org/v1.0.0/specification/.
"""

from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp

from headgate_engine.context.headers cimport HEAD_CHUNKED, HEAD_UPGRADE, MessageHead
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.request cimport BODY_PREFIX, BODY_UNREAD, RequestContext
from headgate_engine.peek.agent cimport CallPeek
from headgate_engine.plan.step cimport CONTINUE, Step, WAIT_BODY

UNKNOWN = "unknown"
cdef str METHOD = "a2a.method"
# The end of a path -> the methods of HTTP, with the names of 0.3 and 1.0. `*` is any segment, `:verb` ends one.
REST = {
    ("message:send",): {"POST": ("message/send", "SendMessage")},
    ("message:stream",): {"POST": ("message/stream", "SendStreamingMessage")},
    ("tasks",): {"GET": ("tasks/list", "ListTasks")},
    ("tasks", "*"): {"GET": ("tasks/get", "GetTask")},
    ("tasks", "*:cancel"): {"POST": ("tasks/cancel", "CancelTask")},
    ("tasks", "*:subscribe"): {
        "GET": ("tasks/resubscribe", "SubscribeToTask"), "POST": ("tasks/resubscribe", "SubscribeToTask")},
    ("tasks", "*", "pushNotificationConfigs"): {
        "GET": ("tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs"),
        "POST": ("tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig")},
    ("tasks", "*", "pushNotificationConfigs", "*"): {
        "GET": ("tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig"),
        "DELETE": ("tasks/pushNotificationConfig/delete", "DeleteTaskPushNotificationConfig")},
    ("extendedAgentCard",): {"GET": ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard")},
    ("v1", "card"): {"GET": ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard")},
}
# Segments of the longest end, with the one in front of it, which may say the version.
MAX_SEGMENTS = 5
LEGACY = "v1"
VERSION_FIELD = "a2a-version"
# Lengths of the paths of cards.
cdef enum:
    CARD = 28
    OLD_CARD = 23


cdef Py_ssize_t card_suffix(const char* path, Py_ssize_t n) noexcept nogil:
    """0.3 and later say agent-card.json, 0.2 agent.json."""
    if n >= CARD and memcmp(path + n - CARD, b"/.well-known/agent-card.json", CARD) == 0:
        return CARD
    return OLD_CARD if n >= OLD_CARD and memcmp(path + n - OLD_CARD, b"/.well-known/agent.json", OLD_CARD) == 0 else 0


cdef bytes client_path_of(RequestContext ctx):
    cdef MessageHead head = ctx.head
    cdef const char* target = head.data + (ctx.target_off if ctx.target_len else head.target_off)
    cdef Py_ssize_t n = ctx.target_len if ctx.target_len else head.target_len
    cdef const char* query = <const char*>memchr(target, 63, n)
    return target[:n] if query == NULL else target[:query - target]


cdef int kind_of(MessageHead head, bytes client_path) except -1:
    cdef const char* method = head.data + head.method_off
    cdef bint get = head.method_len == 3 and memcmp(method, b"GET", 3) == 0
    cdef bint asks = get or head.method_len == 4 and memcmp(method, b"HEAD", 4) == 0
    if head.flags & HEAD_UPGRADE:
        return A2A_OTHER
    if asks and (card_suffix(head.data + head.target_off, head.path_len)
                 or card_suffix(client_path, len(client_path))):
        return A2A_CARD
    if not (get or head.method_len == 4 and memcmp(method, b"POST", 4) == 0
            or head.method_len == 6 and memcmp(method, b"DELETE", 6) == 0):
        return A2A_OTHER
    if rest_names(head) is not None:
        return A2A_REST
    return A2A_CALL if method[0] == 80 else A2A_OTHER


cdef bint _may_be_rest(const char* path, Py_ssize_t n, bint post) noexcept nogil:
    """Whether a path may be one of the binding; most are not."""
    cdef const char* at = path
    if n == 0 or path[n - 1] == 47:
        return False
    if post:            # what is posted without a verb creates one of `pushNotificationConfigs`
        return path[n - 1] == 115 or memchr(path, 58, n) != NULL
    if n >= 4 and memcmp(path + n - 3, b"ard", 3) == 0:
        return True
    while at != NULL:
        if path + n - at >= 6 and memcmp(at, b"/tasks", 6) == 0:
            return True
        at = <const char*>memchr(at + 1, 47, path + n - at - 1)
    return False


cdef tuple rest_names(MessageHead head):
    """Return the names of 0.3 and 1.0 of what a path of the HTTP+JSON binding asks for, None for other paths."""
    cdef const char* path = head.data + head.target_off
    cdef Py_ssize_t n = head.path_len
    cdef Py_ssize_t at = n
    cdef int segments = 0
    cdef list parts
    if not _may_be_rest(path, n, head.data[head.method_off] == 80):
        return None
    while at > 0 and segments < MAX_SEGMENTS - 1:
        at -= 1
        if path[at] == 47:
            segments += 1
    parts = path[at:n].decode("latin-1").split("/")[1:]
    for count in range(1, len(parts) + 1):
        end = parts[len(parts) - count:]
        shape = tuple([_shape(part, place) for place, part in enumerate(end)])
        found = REST.get(shape)
        if found is not None:
            return found.get(head.data[head.method_off:head.method_off + head.method_len].decode("latin-1"))
    return None


cdef str _shape(str part, Py_ssize_t place):
    """Return a segment as the table has it: `place` 0 and 2 are words, 1 and 3 are ids, which a verb may end."""
    if place == 1 and part != "card":
        _, colon, verb = part.rpartition(":")
        return f"*:{verb}" if colon and verb in ("cancel", "subscribe") else "*"
    return "*" if place == 3 else part


cdef str rest_method(MessageHead head):
    """Return the name of what an HTTP+JSON request asks for, in the words of the version that the client speaks."""
    cdef tuple names = rest_names(head)
    version = head.get(VERSION_FIELD)
    if version is not None:
        return names[0] if version.strip().startswith("0.") else names[1]
    return names[0] if LEGACY in head.path.split("/") else names[1]


cdef int note(RequestContext ctx, str key, object value) except -1:
    cdef Py_ssize_t i
    if ctx.log_fields is None:
        ctx.log_fields = []
    for i in range(len(ctx.log_fields)):
        if (<tuple>ctx.log_fields[i])[0] == key:
            ctx.log_fields[i] = (key, value)
            return 0
    ctx.log_fields.append((key, value))
    return 0


cdef class A2aStep(Step):
    """max_bytes: how much of a body is read for its method. The rest is passed on as it arrives."""

    def __init__(self, int64_t max_bytes):
        if max_bytes < 0:
            raise ValueError("the limit is negative")
        self.name = "a2a"
        self.max_bytes = max_bytes

    cdef int run(self, RequestContext ctx) except -1:
        cdef MessageHead head = ctx.head
        cdef int kind = kind_of(head, client_path_of(ctx))
        cdef str method = None
        if kind == A2A_REST:
            note(ctx, METHOD, rest_method(head))
        elif kind == A2A_CALL:
            if media_type_is(head, b"application/json", 16):
                if self._waits(ctx):
                    return WAIT_BODY
                if ctx.body is not None:
                    method = (<CallPeek>CallPeek.__new__(CallPeek)).method_of(
                        ctx.body, len(ctx.body), ctx.body_state == BODY_PREFIX)
            note(ctx, METHOD, UNKNOWN if method is None else method)
        return CONTINUE

    cdef bint _waits(self, RequestContext ctx) except -1:
        """Whether more of the body has to be read."""
        if ctx.body_state == BODY_UNREAD:
            if ctx.head.content_length <= 0 and not ctx.head.flags & HEAD_CHUNKED:
                return False
        elif ctx.body_state != BODY_PREFIX or ctx.body_limit >= self.max_bytes:
            return False
        ctx.body_limit = self.max_bytes
        return True
