from headgate_engine.link.backend import PoolBackend
from headgate_engine.link.contract import ClientConnection, ClientStream, ServerStream, UpstreamProtocol
from headgate_engine.link.worker import Worker

MAX_HOPS: int
INWARD_BACKEND: InwardBackend

class InwardProtocol(UpstreamProtocol):
    """The kind of connection to a port of this process."""

    def __init__(self, worker: Worker) -> None: ...

class InwardConnection(ClientConnection):
    def lead_to(self, key: str) -> None:
        """Carry calls from now on: to the port with this key. TypeError for a connection that no protocol has made."""
    def gone(self) -> None: ...

class InwardCall(ClientStream):
    def go_on(self) -> None:
        """Tell both sides what has waited."""

class InwardAnswer(ServerStream): ...

class InwardBackend(PoolBackend):
    """Hands requests on to another port of this process."""
