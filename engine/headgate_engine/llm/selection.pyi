from headgate_engine.context.request import Reply

READ: frozenset[str]

def model_not_found(model: str) -> Reply:
    """Return the refusal of a model that nobody serves."""
