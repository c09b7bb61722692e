_Transitions = tuple[tuple[str, str, str], ...]

STREAM_STATES: tuple[str, ...]
STREAM_INPUTS: tuple[str, ...]
STREAM: _Transitions
MESSAGE_STATES: tuple[str, ...]
MESSAGE_INPUTS: tuple[str, ...]
MESSAGE: _Transitions
CONNECTION_STATES: tuple[str, ...]
CONNECTION_INPUTS: tuple[str, ...]
CONNECTION: _Transitions
MACHINES: dict[str, tuple[tuple[str, ...], tuple[str, ...], _Transitions]]

def step(machine: str, state: str, event: str) -> str | None:
    """Return the next state of a machine by name, None if it refuses the event."""
