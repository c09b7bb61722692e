"""Protection against DNS rebinding: a foreign web page whose host name resolves to this machine.

Requests of such a page have its name in `host` and `origin`, which local servers must check. Source: "Security Warning"
in https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#streamable-http.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

LOCAL: Final = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)


def is_local(authority: str, fields: Iterable[tuple[str, str]]) -> bool:
    """Return whether the host (`authority`) of a request is this machine, and also its origin if it has one."""
    if not LOCAL.fullmatch(authority):
        return False
    origins = [value for name, value in fields if name.lower() == "origin"]
    if not origins:
        return True
    scheme, mark, host = origins[0].partition("://")
    return len(origins) == 1 and bool(mark) and scheme.lower() in ("http", "https") and bool(LOCAL.fullmatch(host))
