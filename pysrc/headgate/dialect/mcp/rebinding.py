"""DNS rebinding: a foreign page whose name was made to mean this machine. Its requests still name that page.

MCP, "Security Warning" of Streamable HTTP: servers on the local machine look at `origin` and `host`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

LOCAL: Final = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)


def is_local(authority: str, fields: Iterable[tuple[str, str]]) -> bool:
    """Tell whether a request names this machine as its host (`authority`), and as its origin if it has one."""
    if not LOCAL.fullmatch(authority):
        return False
    origins = [value for name, value in fields if name.lower() == "origin"]
    if not origins:
        return True
    scheme, mark, host = origins[0].partition("://")
    return len(origins) == 1 and bool(mark) and scheme.lower() in ("http", "https") and bool(LOCAL.fullmatch(host))
