"""Verification of JSON Web Tokens (RFC 7519) in compact form (RFC 7515), following RFC 8725."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Final

from headgate.crypto.jwks import KeySet
from headgate.document.lazy_dataclass import dataclass

MAX_TOKEN: Final = 16 * 1024
MAX_DEPTH: Final = 16
# Characters of a claim in the log.
MAX_SHOWN: Final = 200
# Three parts in the alphabet of base64url, without padding (RFC 7515 section 2): one token has one spelling.
_COMPACT: Final = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")
LEEWAY_SECONDS: Final = 60
ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
)  # fmt: skip


class TokenError(ValueError):
    """The token is not accepted. The text gives the reason and never quotes the token.

    `detail` says more for the log of the operator: what the token has, and what was wanted.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail


class UnknownKey(TokenError):
    """The key set has no key for the token; a newer key set may have one. `kid` is the key id of the token."""

    def __init__(self, kid: str | None) -> None:
        detail = "it has no key id, and not exactly one key matches" if kid is None else f"kid {_shown(kid)}"
        super().__init__("the token was signed with an unknown key", detail)
        self.kid = kid


@dataclass(frozen=True, slots=True)
class Checks:
    """The requirements on the claims. An empty `audiences` accepts any audience. `required` names mandatory claims."""

    issuer: str
    audiences: tuple[str, ...] = ()
    required: frozenset[str] = frozenset(("exp",))


def header_of(token: bytes) -> dict[str, Any]:
    """Return the unverified header of a token.

    Raises TokenError if it is not a compact JWS, or uses an algorithm or extension that is not allowed.
    """
    if len(token) > MAX_TOKEN:
        raise TokenError("the token is too long")
    parts = token.split(b".")
    if _COMPACT.fullmatch(token) is None:
        raise TokenError("the token is malformed")
    header = _json(parts[0])
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenError("the token's algorithm is not allowed")
    if "crit" in header or "b64" in header:
        raise TokenError("the token uses an extension that is not supported")
    if not isinstance(header.get("kid", ""), str):
        raise TokenError("the token is malformed")
    return header


def _json(part: bytes) -> dict[str, Any]:
    try:
        raw = base64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
        if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH * 16 or _depth(raw) > MAX_DEPTH:
            raise TokenError("the token is nested too deeply")
        found = json.loads(raw)
    except TokenError:
        raise
    except (ValueError, RecursionError):
        raise TokenError("the token is malformed") from None
    if not isinstance(found, dict):
        raise TokenError("the token is malformed")
    return found


def _depth(raw: bytes) -> int:
    deepest = depth = 0
    for byte in raw:
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def verify(token: bytes, keys: KeySet, checks: Checks, now: float) -> dict[str, Any]:
    """Return the verified claims of a token. `now` is in seconds since 1970.

    Raises TokenError, or its subclass UnknownKey if the key set has no key for the token.
    """
    import jwt

    header = header_of(token)
    algorithm, kid = header["alg"], header.get("kid")
    key = keys.find(kid, algorithm)
    if key is None:
        if kid is not None and keys.knows(kid):
            raise TokenError("the token's algorithm does not fit its key")
        raise UnknownKey(kid)
    payload = token.split(b".")[1]
    claims = _json(payload)
    try:
        jwt.api_jws.PyJWS(algorithms=[algorithm]).decode(token, key=key.public, algorithms=[algorithm])
    except (jwt.PyJWTError, ValueError, TypeError):
        raise TokenError("the token's signature is not valid") from None
    check_claims(claims, checks, now)
    return claims


def check_claims(claims: dict[str, Any], checks: Checks, now: float) -> None:
    """Check issuer, audience, `exp`, `nbf` (with LEEWAY_SECONDS) and required claims. `now`: Unix time in seconds.

    Raises TokenError.
    """
    for name in checks.required:
        if claims.get(name) is None:
            raise TokenError(f"the token has no claim {name!r}")
    expires, begins = _time(claims, "exp"), _time(claims, "nbf")
    if expires is not None and now > expires + LEEWAY_SECONDS:
        raise TokenError("the token has expired", f"{now - expires:.0f} s ago")
    if begins is not None and now < begins - LEEWAY_SECONDS:
        raise TokenError("the token is not valid yet", f"for another {begins - now:.0f} s")
    if claims.get("iss") != checks.issuer:
        raise TokenError("the token has another issuer", f"{_shown(claims.get('iss'))}, not {_shown(checks.issuer)}")
    if checks.audiences:
        audience = claims.get("aud")
        given = audience if isinstance(audience, list) else [audience]
        if not any(one in checks.audiences for one in given if isinstance(one, str)):
            wanted = " or ".join(map(_shown, checks.audiences))
            raise TokenError("the token is for another audience", f"{_shown(audience)}, not {wanted}")


def _shown(value: object) -> str:
    """Return a claim for the log, shortened."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"'{text}'" if len(text) <= MAX_SHOWN else f"'{text[:MAX_SHOWN]}...'"


def _time(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise TokenError(f"the claim {name!r} is not a time")
    return float(value)
