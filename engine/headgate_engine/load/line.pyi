class LoadLine:
    """A connection of a generator. Only compiled code calls it."""

    @property
    def active(self) -> int:
        """Requests under way."""
