"""Who may talk to the admin server from within a browser: its own pages and a few development servers, nobody else.

There is no login: whoever reaches the port is the operator. A browser on the operator's machine reaches it on behalf of
every page that it shows, so requests of foreign pages are refused (Origin, RFC 6454; Sec-Fetch-Site, W3C Fetch
Metadata), and host names that a foreign name server could point at this port are not answered to (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

# Pages under development, served by another program on this machine.
ALLOWED: Final = frozenset(
    f"http://{host}:{port}" for host in ("0.0.0.0", "localhost", "127.0.0.1") for port in (3000, 19000)  # noqa: S104
)
METHODS: Final = "GET, POST, PUT, DELETE, OPTIONS"
Headers = tuple[tuple[str, str], ...]


def development(served: Collection[int]) -> frozenset[str]:
    """Return the origins of pages under development. `served`: ports of the gateway, whose pages are of backends."""
    return frozenset(one for one in ALLOWED if urlsplit(one).port not in served)


def is_local_name(host: str) -> bool:
    """Tell whether a Host header is `localhost` or an address: what no foreign DNS name can make a browser send."""
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
    headers: dict[str, str], host: str, to_page: bool, allowed: frozenset[str] = ALLOWED
) -> bool:
    """Tell whether a browser sends the request on behalf of a page that is not ours.

    `to_page`: it asks for a page, which a link elsewhere may lead to: it shows itself to the operator only.
    `allowed`: origins of others that count as ours.
    """
    origin = headers.get("origin")
    if origin is not None:
        return origin not in allowed and not _same(origin, host)
    # Images, scripts and forms that only get something carry no Origin.
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    return not (to_page and headers.get("sec-fetch-mode") == "navigate")


def is_foreign_behind(headers: dict[str, str], host: str, to_page: bool) -> bool:
    """As is_foreign(), behind a listener that may speak TLS, itself or with a proxy before it: the scheme is the
    browser's business, which says in `sec-fetch-site` whether it is the same (it does so wherever a page is https).
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
    """Whether the origin is this server. The port speaks plain HTTP only."""
    try:
        parts = urlsplit(origin)
        return parts.scheme == "http" and bool(parts.netloc) and parts.netloc.lower() == host.lower()
    except ValueError:
        return False


def cors(headers: dict[str, str], allowed: frozenset[str] = ALLOWED) -> Headers:
    """Return the fields that let a page of the list read the answer; none for everybody else."""
    origin = headers.get("origin")
    if origin not in allowed:
        return ()
    return (
        ("access-control-allow-origin", origin),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", "content-type, content-length"),
        ("vary", "origin"),
    )


def preflight(method: str, headers: dict[str, str], allowed: frozenset[str] = ALLOWED) -> Headers | None:
    """Return the fields that answer a preflight of a page of the list; None: it is none."""
    if method != "OPTIONS" or "access-control-request-method" not in headers or not cors(headers, allowed):
        return None
    return (
        *cors(headers, allowed),
        ("access-control-allow-methods", METHODS),
        ("access-control-allow-headers", "content-type, authorization, x-requested-with"),
        ("access-control-max-age", "3600"),
    )
