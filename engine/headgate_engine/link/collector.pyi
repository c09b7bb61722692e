class BodyCollector:
    """The request body that nobody has taken yet."""
