from headgate_engine.link.tunnel import Tunnelling

class Answering(Tunnelling):
    """From the backend's response head to the client's last byte."""

    def guards_answered(self, found: object) -> None: ...
