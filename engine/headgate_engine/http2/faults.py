"""Protocol errors of an HTTP/2 peer, with the error code that is sent (RFC 9113 section 5.4)."""

from __future__ import annotations

from headgate_engine.errors import RemoteProtocolError


class ConnectionFault(RemoteProtocolError):
    """The connection cannot go on: GOAWAY with this code."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


class StreamFault(RemoteProtocolError):
    """One stream cannot go on: RST_STREAM with this code. `status`: what a malformed request would be answered."""

    def __init__(self, reason: str, code: int, status: int = 400) -> None:
        super().__init__(reason, status)
        self.code = code
