from headgate_engine.context.headers import MessageHead

class HeadMark:
    """The parts of a head that restore() resets: fields, method, target and authority."""

    def put_back(self, head: MessageHead) -> None:
        """Python interface of restore(), for tests."""

def mark(head: MessageHead) -> HeadMark:
    """Python interface of mark_head(), for tests."""
