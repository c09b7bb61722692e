"""The page at `/ui`: files of this package, loaded on the first request."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute

KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Scripts and styles from this server only, no markup from text, no requests to other servers, no framing.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
SECURITY: Final = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
    ("cache-control", "no-cache"),
)


class Asset(NamedTuple):
    """One file. `tag` is its entity tag (RFC 9110 section 8.8.3)."""

    body: bytes
    kind: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """Return the files, keyed by their path below `ui/`."""
    found: dict[str, Asset] = {}
    waiting = [("", files("headgate.admin") / "ui")]
    while waiting:
        prefix, folder = waiting.pop()
        for entry in folder.iterdir():
            if entry.is_dir():
                waiting.append((f"{prefix}{entry.name}/", entry))
                continue
            kind = KINDS.get(f".{entry.name.rpartition('.')[2]}")
            if kind is not None:
                body = entry.read_bytes()
                found[prefix + entry.name] = Asset(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
    return found


def page_rows() -> tuple[AdminRoute, ...]:
    """Return the rows of the page. A path without a dot that is not below `assets/` is a view of the page."""

    async def root(_request: AdminRequest) -> AdminResponse:
        return AdminResponse(308, content_type="", headers=(("location", "/ui"), *SECURITY))

    async def page(request: AdminRequest) -> AdminResponse:
        below = request.path.removeprefix("/ui").removeprefix("/")
        name = below if "." in below or below.startswith("assets/") else "index.html"
        asset = assets().get(name)
        if asset is None:
            return AdminResponse(404, content_type="")
        headers = (("etag", asset.tag), *SECURITY)
        if request.headers.get("if-none-match") == asset.tag:
            return AdminResponse(304, content_type="", headers=headers)
        return AdminResponse(200, asset.body, asset.kind, headers)

    return (AdminRoute("GET", "/", root, page=True), AdminRoute("GET", "/ui", page, page=True, tree=True))
