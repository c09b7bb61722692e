"""What a rate limit service is asked, and what it answers
(https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/ratelimit/v3/rls.proto).
"""

from collections.abc import Iterable

from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program

def domain_field(domain: str) -> bytes:
    """Return the encoded field `domain` of a RateLimitRequest."""

class LimitQuestion:
    """Writes a descriptor of a RateLimitRequest. entries: keys and their values; limit: replaces the service's own."""

    def __init__(self, entries: Iterable[tuple[str, Program]], limit: Program | None = None) -> None: ...
    def encode(self, ctx: RequestContext, hits: int | None = None) -> bytes | None:
        """Return the encoded field `descriptors`; None if an expression has no value that can be sent.

        `hits`: what the request counts.
        """

def read_limit_answer(message: bytes) -> LimitAnswer:
    """Read a RateLimitResponse. Raises ValueError for what is none."""

class LimitAnswer:
    """code: of the whole answer. limit, left (both in hits), reset_s: of the descriptor with the least left, if one is
    `known`.
    """

    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @property
    def code(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    @property
    def known(self) -> bool: ...
    @property
    def limit(self) -> int: ...
    @property
    def left(self) -> int: ...
    @property
    def reset_s(self) -> int: ...
    @property
    def told(self) -> list[tuple[bytes, bytes]]:
        """Fields that the service adds to the response."""
    def edit_request(self, head: MessageHead) -> None:
        """Set the fields that the service adds to the request."""
