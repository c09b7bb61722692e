from headgate_engine.plan.step import Step

UNKNOWN: str
REST: dict[tuple[str, ...], dict[str, tuple[str, str]]]
MAX_SEGMENTS: int
LEGACY: str
VERSION_FIELD: str

class A2aStep(Step):
    """Says in the log what an agent is asked. max_bytes: how much of a body is read for the method of a call.

    Raises ValueError for a negative limit.
    """

    def __init__(self, max_bytes: int) -> None: ...
