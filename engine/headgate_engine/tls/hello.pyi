class ClientHello:
    """The first message of a TLS client while it comes in."""

    server_name: str | None
    fault: str | None
    def feed(self, data: bytes) -> int:
        """Read all that has come since the connection began.

        Return 0: more is needed, 1: it is whole, 2: it is no ClientHello.
        """
