"""The resume token in the id of a session that lives in a worker. It lets the worker's successor continue the session.

It contains the client's owner, and the sessions at remote servers or the data to open them again. A child process ends
with its worker, and so do its sessions.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

from headgate.backend.mcp.federation.group import LinkGroup
from headgate.backend.mcp.federation.link import Link, LinkFactory
from headgate.backend.mcp.federation.modern_link import EitherLink

# Longer tokens are omitted: clients and proxies may limit header fields to 8 KiB.
MAX_BYTES: Final = 3000


def resume_token_of(group: LinkGroup, key: str, owner: str, issued: int | None = None) -> bytes:
    """Return the token for a session of the backend `key` and its owner, b"" if the session cannot be resumed.

    `issued`: the time, in seconds since 1970.
    """
    links: list[dict[str, Any]] = []
    for name, link in group.links.items():
        found: dict[str, Any] = {"t": name}
        own = link.resume_token if isinstance(link, EitherLink) else None
        if own is not None:
            found |= own
        elif link.pinned:
            return b""
        elif link.state is not None:
            found["s"] = link.state
        links.append(found)
    content: dict[str, Any] = {"k": key, "u": owner, "l": links}
    if issued is not None:
        content["i"] = issued
    resume_token = zlib.compress(json.dumps(content, separators=(",", ":")).encode())
    return resume_token if len(resume_token) <= MAX_BYTES else b""


def links_of(
    resume_token: bytes, key: str, owner: str, factories: dict[str, LinkFactory], oldest: float = 0.0
) -> dict[str, Link] | None:
    """Return the links of a session; None if it belongs to another backend or owner, if a target no longer exists, or
    if the token was issued before `oldest`. Tokens of versions that noted no time have no age.

    `resume_token` must come from a sealed id.
    """
    if not resume_token:
        return None
    found = json.loads(zlib.decompress(resume_token))
    if found["k"] != key or found["u"] != owner or not {one["t"] for one in found["l"]} <= set(factories):
        return None
    if found.get("i", oldest) < oldest:
        return None
    links: dict[str, Link] = {}
    for one in found["l"]:
        link = links[one["t"]] = factories[one["t"]](one.get("s"))
        if isinstance(link, EitherLink):
            link.restore(one)
    return links
