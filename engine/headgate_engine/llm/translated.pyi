from headgate_engine.plan.tap import ResponseTap

DECODED_STEP: int
MAX_STEPS: int
LEFT_STEPS: int
TOO_LARGE: str

class TranslatedTap(ResponseTap):
    """A ResponseTap that tells a provider's answer in the client's format."""
