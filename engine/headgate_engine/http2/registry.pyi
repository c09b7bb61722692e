from headgate_engine.http2.limits import Http2Limits
from headgate_engine.http2.output import Http2Output

class Http2Registry(Http2Output):
    """The streams of a connection. registry.pxd has its C interface."""

    def __init__(self, limits: Http2Limits) -> None: ...
