class AgentPlace:
    """Where an agent is for its clients and for the gateway.

    client_path, agent_path: path of the agent card, as the client asked for it and as the agent gets it. rewrite: the
    path prefix that the route has matched, and what it has put there. Raises ValueError for another scheme than http
    and https.
    """

    def __init__(
        self,
        scheme: str,
        authority: bytes,
        client_path: bytes,
        agent_path: bytes,
        rewrite: tuple[bytes, bytes] | None = None,
    ) -> None: ...
    def url_for(self, url: str, base: bool = False) -> str:
        """Return the URL that clients use for one that the agent tells. base: it is that of the agent as a whole."""
