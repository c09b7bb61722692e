"""Agent cards: only what is a URL of the agent is replaced, where it stands. The signatures of a changed card go."""

from headgate_engine.plan.tap import ResponseTap

MAX_INTERFACES: int
TOO_LONG: str
ODD_CODING: str
NOT_AN_OBJECT: str
NO_URL: str
OF_BYTES: tuple[bytes, ...]
SIGNATURES_REMOVED: str

class CardError(ValueError):
    """The text is not an agent card whose URLs can be replaced."""

class CardTap(ResponseTap):
    """A ResponseTap that reads an agent card whole and puts the client's URLs into it; C face only."""
