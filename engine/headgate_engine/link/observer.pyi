class RequestObserver:
    """C face only: who watches a request on its way."""
