from headgate_engine.link.backend import PoolBackend

CARD_PATH: bytes

class AgentRuntime(PoolBackend):
    """Sends all requests to one path of the plan's host.

    path: that of all requests. query: behind it, with its mark. cards: requests for the agent card (A2A) get that.
    Raises ValueError for parts that are not those of a request target.
    """

    def __init__(self, path: bytes, query: bytes = b"", *, cards: bool = False) -> None: ...
    @property
    def path(self) -> bytes: ...
    @property
    def query(self) -> bytes: ...
    @property
    def cards(self) -> bool: ...
