from headgate_engine.load.line import LoadLine

class Http2Line(LoadLine):
    """A connection of HTTP/2. Only compiled code calls it."""
