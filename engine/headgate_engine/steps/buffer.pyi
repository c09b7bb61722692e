from headgate_engine.context.request import Reply
from headgate_engine.plan.step import Step

class BufferStep(Step):
    """max_bytes: longest body that is read whole. fail_open: stream longer ones; otherwise reply with `too_large`."""

    def __init__(self, max_bytes: int, fail_open: bool, too_large: Reply) -> None: ...
    @property
    def max_bytes(self) -> int: ...
    @property
    def fail_open(self) -> bool: ...

class ReadBodyStep(Step):
    """Reads a request body, or the first max_bytes of it, for expressions that are evaluated behind this step."""

    def __init__(self, max_bytes: int) -> None: ...
    @property
    def max_bytes(self) -> int: ...
