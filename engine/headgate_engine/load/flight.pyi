class Flight:
    """A request that is under way. Only compiled code calls it."""

    @property
    def due_ns(self) -> int: ...
    @property
    def sent_ns(self) -> int: ...
