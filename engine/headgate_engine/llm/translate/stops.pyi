END: str
SEQUENCE: str
LENGTH: str
CONTEXT: str
TOOLS: str
FILTER: str
PAUSE: str
STOPS: tuple[str, ...]
READ: dict[str, dict[str, str]]
WRITE: dict[str, dict[str, str]]

def read_stop(format: str, word: object) -> str:
    """Return the stop that a format's word means; END for words that are not known."""

MESSAGES_TIERS: dict[str, str]
TIERS_FOR_MESSAGES: dict[str, str]

def tier_of_messages(word: object) -> str | None:
    """Return OpenAI's word for a tier of service of Anthropic's, None if there is none."""

def write_stop(format: str, stop: str) -> str:
    """Return a format's word for a stop. Formats: completions, messages; responses: status or reason, see READ."""
