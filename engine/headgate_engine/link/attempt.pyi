from headgate_engine.link.answer import Answering

class Attempting(Answering):
    """One attempt at a backend."""
