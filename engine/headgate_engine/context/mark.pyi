from headgate_engine.context.headers import MessageHead

class HeadMark:
    """What restore() sets back: the fields, method, target and authority."""

    def put_back(self, head: MessageHead) -> None:
        """Python face of restore(), for tests."""

def mark(head: MessageHead) -> HeadMark:
    """Python face of mark_head(), for tests."""
