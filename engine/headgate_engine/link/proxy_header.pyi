import asyncio
from typing import Any

from headgate_engine.link.timers import Timer
from headgate_engine.tls.identity import CertificateIdentity

class ProxyRules:
    """What is accepted of PROXY protocol headers. strict: a connection without one ends."""

    def __init__(self, v1: bool, v2: bool, strict: bool) -> None: ...
    @property
    def versions(self) -> int: ...
    @property
    def strict(self) -> bool: ...

class ProxyAddresses:
    """The addresses of a connection: those that its header tells, and those of the socket's peer. Within a tunnel,
    those of its client, with the owner of the certificate that it has shown."""

    def __init__(
        self,
        host: str,
        port: int,
        raw_host: str,
        raw_port: int,
        identity: CertificateIdentity | None = None,
        destination: tuple[str, int] | None = None,
    ) -> None: ...
    @property
    def destination(self) -> tuple[str, int] | None:
        """Host and port that the client connected to."""
    @property
    def identity(self) -> CertificateIdentity | None: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def raw_host(self) -> str: ...
    @property
    def raw_port(self) -> int: ...

class ProxyHeader:
    """A header while it comes in. length: in bytes, once it is complete."""

    length: int
    host: str | None
    port: int
    destination: tuple[str, int] | None
    fault: str | None
    def __init__(self, v1: bool = True, v2: bool = True) -> None: ...

class ProxyFront(Timer):
    """The protocol of a connection until its header has come. port: link.protocols.Port, which goes on with it."""

    def __init__(self, port: Any, rules: ProxyRules) -> None: ...
    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def get_buffer(self, sizehint: int) -> memoryview: ...
    def buffer_updated(self, n: int) -> None: ...
    def eof_received(self) -> bool: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def abort_now(self) -> None: ...
