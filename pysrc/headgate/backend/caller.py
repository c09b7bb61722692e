"""Who asks, as far as the policies of the gateway have found out."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from headgate.backend.contract import Identity

OWNER_BYTES: Final = 16


def owner_of(context: Identity | None) -> str:
    """Return a digest of who asks, "" when no policy found that out.

    A session id is no credential: what one subject began no other one may go on with, even with its id (MCP security
    best practices, session hijacking). A subject is the `sub` of an issuer, a user of basic authentication, an API key.
    """
    if context is None:
        return ""
    found: list[Any] = []
    if context.jwt is not None:
        claims = context.jwt
        # A token for a program may name no subject, but the program.
        subject = next(([name, claims[name]] for name in ("sub", "client_id", "azp") if name in claims), None)
        found.append(["jwt", claims.get("iss"), subject])
    if context.basic_user is not None:
        found.append(["basic", context.basic_user])
    if context.api_key_text is not None:
        found.append(["key", context.api_key_text.decode("latin-1")])
    if not found:
        return ""
    return hashlib.blake2b(json.dumps(found).encode(), digest_size=OWNER_BYTES).hexdigest()
