class HeldResponse:
    """A response that steps want whole, until its body is there."""
