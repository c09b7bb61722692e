from headgate_engine.plan.tap import ResponseTap

MAX_PAYLOAD: int

class LogPayloadTap(ResponseTap):
    """A ResponseTap that remembers what the client is answered."""
