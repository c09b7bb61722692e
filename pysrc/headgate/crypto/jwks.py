"""JSON Web Key sets (RFC 7517) with RSA and EC keys (RFC 7518 section 6) and Ed25519 keys (RFC 8037)."""

from __future__ import annotations

import json
from typing import Any, Final

from headgate.document.lazy_dataclass import dataclass

MAX_KEYS: Final = 256
MAX_BYTES: Final = 1024 * 1024
RSA: Final = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"))
CURVES: Final = {"P-256": frozenset(("ES256",)), "P-384": frozenset(("ES384",))}
LEAST_RSA_BITS: Final = 2048


@dataclass(frozen=True, slots=True)
class Key:
    """A public key. `algorithms` are the signature algorithms that the key may verify, `public` is a PyJWT key."""

    kid: str | None
    algorithms: frozenset[str]
    public: Any


@dataclass(frozen=True, slots=True)
class KeySet:
    """The usable keys of a document. `skipped` has one text for each unusable key, with its id and the reason."""

    keys: tuple[Key, ...]
    skipped: tuple[str, ...] = ()

    def find(self, kid: str | None, algorithm: str) -> Key | None:
        """Return the key with the id `kid` that fits the algorithm, None if there is no such key or more than one.

        With `kid` None, return the only key that fits the algorithm, None if there is not exactly one.
        """
        if kid is not None:
            named = [key for key in self.keys if key.kid == kid and algorithm in key.algorithms]
            return named[0] if len(named) == 1 else None
        fitting = [key for key in self.keys if algorithm in key.algorithms]
        return fitting[0] if len(fitting) == 1 else None

    def knows(self, kid: str | None) -> bool:
        """Return whether the set has a key with this id."""
        return any(key.kid == kid for key in self.keys)


def parse_jwks(document: str | bytes) -> KeySet:
    """Return the keys of a JWKS document or of a single JWK.

    Raises ValueError if the document is neither. A malformed or unsupported key is skipped.
    """
    import jwt  # takes 22 MB, so it is imported only when there are keys

    if len(document) > MAX_BYTES:
        raise ValueError("the key set is too large")
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        raise ValueError("the key set is not JSON") from None
    entries = found.get("keys", [found] if "kty" in found else None) if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise ValueError("the key set has no list 'keys'")
    keys, skipped = [], []
    for entry in entries[:MAX_KEYS]:
        try:
            keys.append(_key(entry))
        except (ValueError, TypeError, KeyError, jwt.PyJWTError) as error:
            kid = entry.get("kid") if isinstance(entry, dict) else None
            skipped.append(f"{kid or 'a key without kid'}: {error or type(error).__name__}")
    return KeySet(tuple(keys), tuple(skipped))


def _key(entry: Any) -> Key:
    import jwt

    if not isinstance(entry, dict):
        raise ValueError("not an object")
    if entry.get("use", "sig") != "sig" or "verify" not in entry.get("key_ops", ["verify"]):
        raise ValueError("not a key for signatures")
    algorithms = _algorithms(entry)
    named = entry.get("alg")
    if named is not None:
        if named not in algorithms:
            raise ValueError(f"algorithm {named!r} does not fit the key")
        algorithms = frozenset((named,))
    kid = entry.get("kid")
    if kid is not None and not isinstance(kid, str):
        raise ValueError("kid is not a string")
    # Private members of the key are dropped if the document contains them.
    public = {name: entry[name] for name in ("kty", "n", "e", "crv", "x", "y") if name in entry}
    key = jwt.PyJWK.from_dict(public, algorithm=sorted(algorithms)[0]).key
    if entry["kty"] == "RSA" and key.key_size < LEAST_RSA_BITS:
        raise ValueError(f"an RSA key of less than {LEAST_RSA_BITS} bits")
    return Key(kid, algorithms, key)


def _algorithms(entry: dict[str, Any]) -> frozenset[str]:
    kind = entry.get("kty")
    if kind == "RSA":
        return RSA
    if kind == "EC" and entry.get("crv") in CURVES:
        return CURVES[entry["crv"]]
    if kind == "OKP" and entry.get("crv") == "Ed25519":
        return frozenset(("EdDSA",))
    raise ValueError(f"key type {kind!r} is not for verification")
