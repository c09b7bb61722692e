from collections.abc import Callable

from headgate_engine.a2a.place import AgentPlace
from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.limit.bucket import TokenBucket
from headgate_engine.link.timers import Timer, TimerQueue
from headgate_engine.peek.json import RpcPeek
from headgate_engine.peek.rpc import RpcMessage
from headgate_engine.plan.step import Step
from headgate_engine.steps.aws_signature import AwsKeys
from headgate_engine.steps.verified import VerifiedTokens

def rewritten_card(text: bytes, place: AgentPlace) -> tuple[bytes, int]:
    """Return (card with the client's URLs, number of signatures that were removed). Raises CardError."""

def settle_cookies(ctx: RequestContext) -> None:
    """Move the gateway's own cookies from the head of a request to its `own_cookies`."""

def is_media_type(head: MessageHead, name: bytes) -> bool:
    """Return whether the content type is `name` (lower case). Case and parameters of the field are ignored."""

def own_reply(ctx: RequestContext) -> Reply | None:
    """Return the reply that a step has set."""

def is_phone_number(candidate: bytes) -> bool:
    """Return whether digits with separators are a valid telephone number.

    A number without `+` is valid if a caller in one of the regions of ci/phone_rules.py could dial it. The result is
    that of `phonenumbers.is_valid_number(phonenumbers.parse(...))`, but letters and extensions are not read.
    """

def look_at(bucket: TokenBucket, n: int, now_ns: int) -> tuple[bool, int, int, int]:
    """Return what take_at() would return, and take nothing."""

def settle_at(bucket: TokenBucket, n: int, now_ns: int) -> None:
    """Give tokens back (n > 0) or take them away (n < 0). The level stays within 0..max_tokens."""

def as_grpc(reply: Reply) -> Reply:
    """Return the reply as a gRPC client reads it."""

def plain_head(ctx: RequestContext) -> str | None:
    """Return the session id of a request whose head the engine passes on, None for one that Python serves."""

def target_head(ctx: RequestContext, message: RpcMessage) -> MessageHead | None:
    """Return the fields that a target gets; None where a field cannot hold what the message says."""

def id_span(peek: RpcPeek) -> tuple[int, int]:
    """Return the span (start, stop) of the raw id, (0, 0) if there is none."""

def params_span(peek: RpcPeek) -> tuple[int, int]:
    """Return the span (start, stop) of the raw params, (0, 0) if there are none."""

def come_due(timer: Timer, now_ns: int) -> None:
    """Do what a deadline does when it is over. now_ns: CLOCK_MONOTONIC, ns."""

def draw_below(bound: int) -> int:
    """Return a random number in [0, bound). Raises ValueError for a bound of 0 or of 2**32 and more."""

def uuid_text() -> str:
    """Return a random UUID (RFC 9562, version 4)."""

def same_keys(one: AwsKeys, other: AwsKeys) -> bool:
    """Return whether both make the same signatures."""

def bytes_kept(tokens: VerifiedTokens) -> int:
    """Return how many bytes the tokens have that are remembered."""

class PythonTimer(Timer):
    """A deadline for Python callers: `function(now_ns)` is called when it is due."""

    def __init__(self, queue: TimerQueue, function: Callable[[int], object]) -> None: ...
    def arm(self, deadline_ns: int) -> None:
        """Set or move the deadline, in ns of the monotonic clock."""
    def disarm(self) -> None: ...
    def remove(self) -> None: ...

def step_nanoseconds(step: Step, make: Callable[[], RequestContext], times: int) -> float:
    """Return the mean time of one run in ns, each on a new context from `make()`.

    The time of the clock calls is subtracted.
    """
