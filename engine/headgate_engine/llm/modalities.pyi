from headgate_engine.context.request import TokenUsage

FIELDS: tuple[str, ...]

def with_parts(usage: TokenUsage, parts: tuple[int, ...]) -> TokenUsage:
    """Return the usage with what it is made of: text, images, sound of input and then of output, -1 for unknown."""
