from headgate_engine.link.contract import ResponseSink

class UpstreamAttempt(ResponseSink):
    """C face only: one attempt at a backend."""
