from headgate_engine.plan.tap import ResponseTap

class OuterTap(ResponseTap):
    """C face only: a tap around another one, which shows what that one shows."""
