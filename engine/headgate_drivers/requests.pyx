"""Parts of a request without a request, and what one policy keeps."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from headgate_engine.a2a.card cimport rewritten
from headgate_engine.a2a.place cimport AgentPlace
from headgate_engine.context.cookies cimport take_session_cookies
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.random cimport random_below
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.context.trace_context cimport random_uuid
from headgate_engine.guard.phone cimport is_phone
from headgate_engine.limit.bucket cimport TakeResult, TokenBucket
from headgate_engine.link.grpc_status cimport grpc_reply
from headgate_engine.link.timers cimport Timer, TimerQueue
from headgate_engine.mcp.fields cimport ClientHead, add_mirrored, copy_fields
from headgate_engine.peek.json cimport RpcPeek
from headgate_engine.peek.rpc cimport RpcMessage
from headgate_engine.plan.step cimport Step
from headgate_engine.steps.aws_signature cimport AwsKeys
from headgate_engine.steps.verified cimport VerifiedTokens


def rewritten_card(bytes text not None, AgentPlace place not None):
    return rewritten(text, place)


def settle_cookies(RequestContext ctx not None):
    take_session_cookies(ctx)


def is_media_type(MessageHead head not None, bytes name not None):
    return media_type_is(head, name, len(name))


def own_reply(RequestContext ctx not None):
    return ctx.reply


def is_phone_number(bytes candidate not None):
    return is_phone(<const uint8_t*>PyBytes_AS_STRING(candidate), PyBytes_GET_SIZE(candidate))


def look_at(TokenBucket bucket not None, int64_t n, int64_t now_ns):
    cdef TakeResult result
    bucket.look(n, now_ns, &result)
    return bool(result.allowed), result.limit, result.remaining, result.reset_s


def settle_at(TokenBucket bucket not None, int64_t n, int64_t now_ns):
    bucket.settle(n, now_ns)


def as_grpc(Reply reply not None):
    return grpc_reply(reply)


def plain_head(RequestContext ctx not None):
    cdef ClientHead found = ClientHead.__new__(ClientHead)
    found.read(ctx.head)
    return found.session_id if found.plain else None


def target_head(RequestContext ctx not None, RpcMessage message not None):
    cdef MessageHead head = MessageHead()
    copy_fields(ctx, head, ())
    return head if add_mirrored(head, message, message.name) else None


def id_span(RpcPeek peek not None):
    return peek.id_start, peek.id_stop


def params_span(RpcPeek peek not None):
    return peek.params_start, peek.params_stop


def draw_below(uint64_t bound):
    if not 0 < bound < (<uint64_t>1 << 32):
        raise ValueError(f"bound {bound}")
    return random_below(bound)


def uuid_text():
    cdef char[36] text
    random_uuid(text)
    return text[:36].decode("ascii")


def same_keys(AwsKeys one not None, AwsKeys other not None):
    return (one.access, one.secret, one.token) == (other.access, other.secret, other.token)


def bytes_kept(VerifiedTokens tokens not None):
    return tokens.size


def come_due(Timer timer not None, int64_t now_ns):
    timer.on_timer(now_ns)


cdef class PythonTimer(Timer):
    """A deadline for Python callers: `function(now_ns)` is called when it is due."""

    cdef TimerQueue queue
    cdef object function

    def __init__(self, TimerQueue queue not None, function):
        self.queue = queue
        self.function = function

    cdef int on_timer(self, int64_t now_ns) except -1:
        self.function(now_ns)
        return 0

    def arm(self, int64_t deadline_ns):
        """Sets or moves the deadline, in ns of the monotonic clock."""
        self.queue.arm(self, deadline_ns)

    def disarm(self):
        self.queue.disarm(self)

    def remove(self):
        self.queue.remove(self)


def step_nanoseconds(Step step not None, make, int times):
    cdef RequestContext ctx
    cdef int64_t started, empty = 0, total = 0
    cdef int _i
    for _i in range(times):
        started = clock_ns()
        empty += clock_ns() - started
        ctx = make()
        started = clock_ns()
        step.run(ctx)
        total += clock_ns() - started
    return (total - empty) / times


cdef int64_t clock_ns() noexcept nogil:
    cdef timespec ts
    clock_gettime(CLOCK_MONOTONIC, &ts)
    return <int64_t>ts.tv_sec * 1000000000 + ts.tv_nsec
