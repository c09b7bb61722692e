from headgate_engine.load.line import LoadLine

class Http1Line(LoadLine):
    """A connection of HTTP/1.1. Only compiled code calls it."""
