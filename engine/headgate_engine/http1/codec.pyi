from headgate_engine.http1.receiver import Http1Receiver

class Http1Codec(Http1Receiver):
    """HTTP/1.1 (RFC 9112) for one connection, SERVER or CLIENT. codec.pxd has its C interface."""
