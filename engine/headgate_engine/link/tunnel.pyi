class StreamTunnel:
    """An upgraded connection, as who inspects it sees it; does nothing once it is closed."""

    def tunnel_send(self, to_upstream: bytes, to_client: bytes) -> None:
        """Send what may go on to either side."""
    def tunnel_hold(self, client: bool, held: bool) -> None:
        """Stop or go on reading one side."""
    def tunnel_end(self, detail: str) -> None:
        """End it: what was sent leaves, then both connections close."""
