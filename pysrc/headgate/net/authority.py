"""The `host` that goes to a backend."""

from __future__ import annotations

from headgate.ir.endpoint import Endpoint
from headgate.net.dns import is_address


def rewritten_authority(endpoint: Endpoint) -> bytes | None:
    """Return the authority that goes out: a named host's own; None keeps the client's (addresses, sockets)."""
    if endpoint.unix_path is not None or is_address(endpoint.host) or endpoint.authority is None:
        return None
    host, colon, port = endpoint.authority.partition(":")
    return host.encode("idna") + colon.encode() + port.encode()


def own_authority(endpoint: Endpoint) -> str:
    """Return the `host` of calls the gateway makes itself: the endpoint's own, `localhost` for sockets."""
    if endpoint.authority is None:
        return "localhost"
    if endpoint.authority.startswith("["):
        return endpoint.authority
    host, colon, port = endpoint.authority.partition(":")
    return host.encode("idna").decode() + colon + port
