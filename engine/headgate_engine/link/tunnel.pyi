from headgate_engine.link.exchange import ExchangeState

class Tunnelling(ExchangeState):
    """Upgraded connections."""

    def tunnel_send(self, to_upstream: bytes, to_client: bytes) -> None:
        """Send what may go on to either side of an inspected tunnel."""
    def tunnel_hold(self, client: bool, held: bool) -> None:
        """Stop or go on reading one side of an inspected tunnel."""
    def tunnel_end(self, detail: str) -> None:
        """End an inspected tunnel: what was sent leaves, then both connections close."""
