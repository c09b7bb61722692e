class SessionStream:
    """One stream of a connection. stream.pxd has its C interface."""

    number: int
    @property
    def state_name(self) -> str:
        """One of states.STREAM_STATES, for tests."""
