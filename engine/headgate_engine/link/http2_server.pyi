from headgate_engine.link.downstream import DownstreamConnection
from headgate_engine.link.http2_stream import Http2StreamOwner

class Http2Server(Http2StreamOwner):
    """HTTP/2 on the connection of a client; made by link.downstream when its client speaks it."""

    def __init__(self, face: DownstreamConnection) -> None: ...
