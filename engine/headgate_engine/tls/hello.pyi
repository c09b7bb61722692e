class ClientHello:
    """The first message of a TLS client while it comes in."""

    server_name: str | None
    fault: str | None
