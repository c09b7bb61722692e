class StreamFilter:
    """Stands between a request and its client."""
