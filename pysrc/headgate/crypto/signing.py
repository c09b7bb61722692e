"""Signing of JSON Web Tokens: RFC 7515 with RFC 7518 algorithms."""

from __future__ import annotations

from typing import Any, Final

CURVES: Final = {"ES256": "secp256r1", "ES384": "secp384r1"}
RSA: Final = ("RS256", "RS384", "RS512", "PS256")
LEAST_RSA_BITS: Final = 2048
# Clocks differ: a token was issued a little while ago.
BACKDATED_SECONDS: Final = 10


def signing_key(pem: str, algorithm: str) -> Any:
    """Return the private key of a PEM text; ValueError, without the text, for one that does not fit the algorithm."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # 9 MB: only where tokens are signed
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise ValueError("not an unencrypted PEM private key") from error
    if algorithm in RSA:
        if not isinstance(key, rsa.RSAPrivateKey) or key.key_size < LEAST_RSA_BITS:
            raise ValueError(f"{algorithm} needs an RSA key of at least {LEAST_RSA_BITS} bits")
    elif not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != CURVES.get(algorithm):
        raise ValueError(f"{algorithm} needs a key on {CURVES.get(algorithm, 'another curve')}")
    return key


def sign(key: Any, algorithm: str, claims: dict[str, Any], *, ttl_s: int, now: float, kid: str | None = None) -> bytes:
    """Return a compact token with `iat` and `exp` added to the claims."""
    payload = {**claims, "iat": int(now) - BACKDATED_SECONDS, "exp": int(now) + ttl_s}
    return signed(key, algorithm, payload, {} if kid is None else {"kid": kid})


def signed(key: Any, algorithm: str, claims: dict[str, Any], header: dict[str, Any]) -> bytes:
    """Return a compact token with these claims; `header`: more of its header than algorithm and type."""
    import jwt

    return jwt.encode(claims, key, algorithm, headers=header).encode()
