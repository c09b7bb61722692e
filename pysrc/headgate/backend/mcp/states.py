"""Ids of sessions at remote servers: the servers' session ids and the owner, sealed into the client's id."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from typing import Any, Final

from headgate.crypto.sealed import Sealer

# Longer contents are compressed: header fields may be limited to 8 KiB, and there may be 128 targets.
PLAIN_BYTES: Final = 400


class SessionStates:
    """Seals and opens session ids with a key that all workers and replicas share."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def seal(self, states: Iterable[tuple[str, str | None]], owner: str, issued: int | None = None) -> str:
        """Return the id of a session with its targets, in order, and the session id of each server. `issued`: the time,
        in seconds since 1970.
        """
        found: dict[str, Any] = {"t": "mcp", "s": [{"t": t} if s is None else {"t": t, "s": s} for t, s in states]}
        if owner:
            found["u"] = owner
        if issued is not None:
            found["i"] = issued
        content = json.dumps(found, separators=(",", ":")).encode()
        return self._sealer.seal(content if len(content) <= PLAIN_BYTES else zlib.compress(content))

    def open(self, session_id: str, owner: str, oldest: float = 0.0) -> dict[str, str | None] | None:
        """Return the server's session id for each target; None if the id is not the gateway's, has another owner or was
        issued before `oldest`. Ids of versions that noted no time have no age.
        """
        content = self._sealer.open(session_id)
        if content is None:
            return None
        found = json.loads(content if content.startswith(b"{") else zlib.decompress(content))
        if found.get("u", "") != owner or found.get("i", oldest) < oldest:
            return None
        return {one["t"]: one.get("s") for one in found["s"]}
