"""What the id of a session that lives in a worker says of it, so that the worker's successor can go on: who the client
is, and where the sessions of remote servers stand, or how to open them again. A process ends with its worker, and its
sessions with it.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

from headgate.backend.mcp.federation.group import LinkGroup
from headgate.backend.mcp.federation.link import Link, LinkFactory
from headgate.backend.mcp.federation.modern_link import EitherLink

# Longer ones are left out: clients and proxies take fields of 8 KiB at least.
MAX_BYTES: Final = 3000


def resume_token_of(group: LinkGroup, key: str, owner: str) -> bytes:
    """Return what brings a session of the backend `key` back for its owner, b"" where nothing does."""
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
    resume_token = zlib.compress(json.dumps({"k": key, "u": owner, "l": links}, separators=(",", ":")).encode())
    return resume_token if len(resume_token) <= MAX_BYTES else b""


def links_of(resume_token: bytes, key: str, owner: str, factories: dict[str, LinkFactory]) -> dict[str, Link] | None:
    """Return the links of a session; None where it is another backend's, somebody else's, or of targets that are gone.
    `resume_token` was sealed here.
    """
    if not resume_token:
        return None
    found = json.loads(zlib.decompress(resume_token))
    if found["k"] != key or found["u"] != owner or not {one["t"] for one in found["l"]} <= set(factories):
        return None
    links: dict[str, Link] = {}
    for one in found["l"]:
        link = links[one["t"]] = factories[one["t"]](one.get("s"))
        if isinstance(link, EitherLink):
            link.restore(one)
    return links
