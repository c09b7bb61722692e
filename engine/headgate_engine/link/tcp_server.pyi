import asyncio

from headgate_engine.link.contract import RequestFactory, ResponseSink
from headgate_engine.link.face import ClientFace
from headgate_engine.link.tcp_upstream import BurstWire
from headgate_engine.link.worker import Worker
from headgate_engine.plan.plans import BindSlot

class TcpConnection(ClientFace):
    """A client's connection whose bytes go to a backend as they come; made by link.protocols.Port.

    asked: the name in a TLS handshake that is passed on. first: what has been read already.
    """

    def __init__(
        self,
        worker: Worker,
        slot: BindSlot,
        requests: RequestFactory | None = None,
        asked: str | None = None,
        first: bytes = b"",
    ) -> None: ...
    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def get_buffer(self, sizehint: int) -> memoryview: ...
    def buffer_updated(self, n: int) -> None: ...
    def eof_received(self) -> bool: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def on_timer(self, now_ns: int) -> None: ...
    def decided(self, refusal: str | None) -> None:
        """Choose a backend, or end the connection: a service has decided about it."""
    @property
    def is_idle(self) -> bool: ...
    def close_if_idle(self, before_ns: int) -> bool: ...
    def abort_now(self) -> None: ...

class TcpWire(BurstWire):
    """C face only: hands a TcpConnection what comes in."""

class TcpCall(ResponseSink):
    """C face only: the connection to the backend."""
