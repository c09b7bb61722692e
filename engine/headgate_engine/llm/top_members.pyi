from headgate_engine.peek.json import ChatPeek

class TopMembers:
    """Where the members of an object stand in its text. top_members.pxd has its C interface."""

def read_ahead(body: bytes) -> tuple[ChatPeek | None, TopMembers | None]:
    """Read a body, for the most part without the interpreter's lock.

    Return what routing reads of it, None for what is no JSON, and where its members stand, None for what is no object
    or has too many.
    """

def read_members(body: bytes) -> TopMembers | None:
    """Return where the members of a JSON object stand, None if it has too many. Raises ValueError for anything else."""
