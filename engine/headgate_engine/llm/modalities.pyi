from headgate_engine.context.request import Usage

FIELDS: tuple[str, ...]

def with_parts(usage: Usage, parts: tuple[int, ...]) -> Usage:
    """Return the usage with what it is made of: text, images, sound of input and then of output, -1 for unknown."""
