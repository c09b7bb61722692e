STATES: tuple[str, ...]
INPUTS: tuple[str, ...]
TRANSITIONS: tuple[tuple[str, str, str], ...]

def step(state: str, event: str) -> str | None:
    """Return the next state by name, None if the machine refuses the event."""
