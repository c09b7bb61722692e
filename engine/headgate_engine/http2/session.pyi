from headgate_engine.http2.limits import Http2Limits
from headgate_engine.http2.registry import Http2Registry

class Http2Session(Http2Registry):
    """A connection without a socket. session.pxd has its C interface, headgate_drivers.http2 a face for tests."""

    def __init__(self, server: bool, limits: Http2Limits, extended: bool = False) -> None: ...
