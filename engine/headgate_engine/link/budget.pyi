from typing import Protocol

class _Pool(Protocol):
    @property
    def idle_count(self) -> int: ...
    def shed_idle(self, most: int) -> int: ...

class DescriptorBudget:
    """Who may open a descriptor in a worker. limit: RLIMIT_NOFILE, the number of descriptors."""

    def __init__(self, limit: int) -> None: ...
    @property
    def limit(self) -> int: ...
    @property
    def upstream(self) -> int:
        """Connections to backends, open and opening."""
    @property
    def denied(self) -> int:
        """Connections to backends that were not opened for want of a descriptor."""
    @property
    def shed(self) -> int:
        """Idle connections to backends that were closed to make room."""
    def client_share(self) -> int:
        """Return how many client connections there may be: a fifth is kept for those to backends, which are shared."""
    def join(self, pool: _Pool) -> None:
        """Close idle connections of this pool (its `shed_idle(most)`) when descriptors run out."""
    def leave(self, pool: _Pool) -> None:
        """Forget a pool."""
