STATES: tuple[str, ...]
EVENTS: tuple[str, ...]
TRANSITIONS: tuple[tuple[str, str, str], ...]

def step(state: str, event: str) -> str | None:
    """Return the next state by name, None when the machine refuses; ValueError for a name that is none."""
