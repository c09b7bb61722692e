from headgate_engine.context.request import Reply
from headgate_engine.link.backend import Backend, PoolBackend

PARTIAL: tuple[bytes, ...]

class A2aBackend(Backend):
    """Agents that speak A2A: `inner` says where requests go.

    limit: bytes of a card, and of an answer that is read for the log. failed: the answer where a card cannot be
    rewritten. prefix: what the route puts in the place of a path prefix. Raises ValueError for a negative limit.
    """

    def __init__(self, inner: PoolBackend, *, limit: int, failed: Reply, prefix: bytes | None = None) -> None: ...
    @property
    def inner(self) -> PoolBackend: ...
