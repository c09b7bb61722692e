"""The `host` header (HTTP/2: `:authority`) of requests to a backend."""

from __future__ import annotations

from headgate.ir.endpoint import Endpoint
from headgate.net.dns import is_address


def rewritten_authority(endpoint: Endpoint) -> bytes | None:
    """Return the authority to send to a backend that has a host name, or None to keep the client's authority.

    None stands for endpoints with an IP address or a Unix socket. Non-ASCII names are converted by IDNA.
    """
    if endpoint.unix_path is not None or is_address(endpoint.host) or endpoint.authority is None:
        return None
    host, colon, port = endpoint.authority.partition(":")
    return host.encode("idna") + colon.encode() + port.encode()


def own_authority(endpoint: Endpoint) -> str:
    """Return the `host` of requests that the gateway itself originates; `localhost` for a Unix socket."""
    if endpoint.authority is None:
        return "localhost"
    if endpoint.authority.startswith("["):
        return endpoint.authority
    host, colon, port = endpoint.authority.partition(":")
    return host.encode("idna").decode() + colon + port
