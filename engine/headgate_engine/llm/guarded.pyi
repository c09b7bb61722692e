from headgate_engine.plan.tap import ResponseTap

ENCODED: str

class GuardTap(ResponseTap):
    """A ResponseTap that asks guards about an answer in the client's format."""
