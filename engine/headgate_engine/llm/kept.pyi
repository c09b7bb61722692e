from headgate_engine.plan.tap import ResponseTap

MAX_KEPT: int

class KeptTap(ResponseTap):
    """A ResponseTap that remembers what the client is answered."""
