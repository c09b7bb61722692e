from headgate_engine.plan.tap import ResponseTap

class UsageTap(ResponseTap):
    """C face only: token usage out of a provider's answer."""
