from headgate_engine.context.request import Reply

REASONS: dict[int, str]

def refused(status: int, code: str, message: str) -> Reply:
    """Return the error object of LLM routes, before it is told in the client's format."""
