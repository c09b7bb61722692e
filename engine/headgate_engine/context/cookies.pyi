from headgate_engine.context.headers import MessageHead

SESSION_PREFIX: str

def without_session_cookies(value: str) -> str:
    """Return the value of a cookie field without the gateway's own cookies; empty if it has no others."""

def settle_cookies(head: MessageHead) -> None:
    """Remove the gateway's own cookies from a request."""
