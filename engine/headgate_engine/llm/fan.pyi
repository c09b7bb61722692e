from headgate_engine.link.contract import ClientStream
from headgate_engine.link.pool import Pool
from headgate_engine.plan.tap import ResponseTap

class Refused(Exception):
    """One of several calls was refused: its status and body, in the client's format, are the answer to all."""

    status: int
    body: bytes
    def __init__(self, status: int, body: bytes) -> None: ...

class StreamFailed(Exception):
    """The stream of one choice is broken, and the client has been told."""

class FanPool(Pool):
    """Stands for a pool of a provider that makes one choice of an answer at a time."""

class FanStream(ClientStream):
    """A request for several choices: one call for each, and one answer."""

class FanTap(ResponseTap):
    """Tells the usage of all choices."""
