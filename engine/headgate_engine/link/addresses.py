"""Addresses of connections, as logs and expressions show them."""

from __future__ import annotations

import asyncio


def address_of(transport: asyncio.BaseTransport, end: str) -> tuple[str, int]:
    """Return host and port of `peername` or `sockname`; ("", 0) for a Unix socket.

    IPv4 clients of an IPv6 socket have a mapped address (RFC 4291 section 2.5.5.2), which is shown as the IPv4 one.
    """
    name = transport.get_extra_info(end)
    return (name[0].removeprefix("::ffff:"), name[1]) if isinstance(name, tuple) else ("", 0)


def address_text(host: str, port: int) -> str:
    """Return `host:port`, with brackets around an IPv6 address; `unix` without a host."""
    if not host:
        return "unix"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def chosen_protocol(transport: asyncio.BaseTransport) -> str | None:
    """Return the protocol that the TLS handshake has chosen (ALPN, RFC 7301); None without one."""
    secure = transport.get_extra_info("ssl_object")
    return None if secure is None else secure.selected_alpn_protocol()
