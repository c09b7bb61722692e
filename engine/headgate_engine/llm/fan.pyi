from headgate_engine.link.contract import ClientStream
from headgate_engine.link.pool import Pool
from headgate_engine.plan.tap import ResponseTap

AT_ONCE: int
OWN_FIELDS: frozenset[str]
TOO_LARGE: str

class Refused(Exception):
    """One of several calls was refused: its status and body, in the client's format, are the answer to all."""

    status: int
    body: bytes
    def __init__(self, status: int, body: bytes) -> None: ...

class StreamFailed(Exception):
    """The stream of one choice is broken, and the client has got the error."""

class FanPool(Pool):
    """Stands for a pool of a provider that has to be asked several times for one answer."""

class FanStream(ClientStream):
    """A request for which several calls are made, and one answer."""

class FanTap(ResponseTap):
    """Tells the usage of all calls."""
