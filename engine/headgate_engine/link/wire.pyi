from headgate_engine.link.reads import Readable

class Wire(Readable):
    """C face only: a transport as the engine reads and writes it."""
