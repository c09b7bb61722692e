"""Protection of the admin server against other sites' pages in the operator's browser.

The server has no login: every client that reaches the port is the operator. A browser on the operator's machine sends
requests for every page that it shows, so the server refuses requests from foreign pages (Origin, RFC 6454;
Sec-Fetch-Site, https://www.w3.org/TR/fetch-metadata/). A page on another port of this machine is as foreign as any.
The server also refuses host names that a foreign name server could resolve to this port (DNS rebinding). Its own pages
are admitted, and those of the origins that the configuration names.
"""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

METHODS: Final = "GET, POST, PUT, DELETE, OPTIONS"
Headers = tuple[tuple[str, str], ...]


def is_local_name(host: str) -> bool:
    """Return True if a Host header is `localhost` or an address: DNS rebinding needs another name."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") and host.count(":") != 0 else host
    name = name.strip("[]")
    if name.lower() == "localhost" or not host:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_foreign(
    headers: dict[str, str], host: str, to_page: bool, allowed: frozenset[str] = frozenset()
) -> bool:
    """Return True if a browser sends the request for a foreign page.

    `to_page` is True if the target is a page. Links on other sites may lead there, since only the operator sees the
    page. `allowed` holds foreign origins that are admitted.
    """
    origin = headers.get("origin")
    if origin is not None:
        return origin not in allowed and not _same(origin, host)
    # Browsers send no Origin with GET requests for images, scripts and forms.
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    return not (to_page and headers.get("sec-fetch-mode") == "navigate")


def is_foreign_behind(headers: dict[str, str], host: str, to_page: bool) -> bool:
    """Return True if a browser sends the request for a foreign page, for requests through a listener.

    The scheme is unknown here, because the listener or a proxy in front of it may terminate TLS. The browser compares
    the origins itself and sends the result in `sec-fetch-site`, on every https page.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("none", "same-origin") and not (to_page and headers.get("sec-fetch-mode") == "navigate")
    origin = headers.get("origin")
    if origin is None:
        return False
    scheme, mark, name = origin.lower().partition("://")
    return not (mark and scheme in ("http", "https") and name == host.lower())


def _same(origin: str, host: str) -> bool:
    """Return True if the origin is this server, which serves plain HTTP only."""
    try:
        parts = urlsplit(origin)
        return parts.scheme == "http" and bool(parts.netloc) and parts.netloc.lower() == host.lower()
    except ValueError:
        return False


def cors(headers: dict[str, str], allowed: frozenset[str] = frozenset()) -> Headers:
    """Return the CORS fields that let a page of an allowed origin read the response; empty for other origins."""
    origin = headers.get("origin")
    if origin not in allowed:
        return ()
    return (
        ("access-control-allow-origin", origin),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", "content-type, content-length"),
        ("vary", "origin"),
    )


def preflight(method: str, headers: dict[str, str], allowed: frozenset[str] = frozenset()) -> Headers | None:
    """Return the fields that answer a CORS preflight of an allowed origin; None if the request is not one."""
    if method != "OPTIONS" or "access-control-request-method" not in headers or not cors(headers, allowed):
        return None
    return (
        *cors(headers, allowed),
        ("access-control-allow-methods", METHODS),
        ("access-control-allow-headers", "content-type, authorization, x-requested-with"),
        ("access-control-max-age", "3600"),
    )
