from headgate_engine.link.pipe import ResponsePipe

class TappedPipe(ResponsePipe):
    """C face only: the way of a response that a tap counts, translates or guards."""
