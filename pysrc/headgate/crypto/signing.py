"""Signing of JSON Web Tokens (RFC 7515) with the algorithms of RFC 7518."""

from __future__ import annotations

from typing import Any, Final

CURVES: Final = {"ES256": "secp256r1", "ES384": "secp384r1"}
RSA: Final = ("RS256", "RS384", "RS512", "PS256")
LEAST_RSA_BITS: Final = 2048
# `iat` is set this far into the past, because the clock of the receiver may be slow.
BACKDATED_SECONDS: Final = 10


def signing_key(pem: str, algorithm: str) -> Any:
    """Return the private key of a PEM text.

    Raises ValueError if it is not an unencrypted private key that fits the algorithm. The message never quotes the key.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # takes 9 MB, so it is imported when first used
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
    """Return a compact token with `iat` and `exp` added to the claims. `now` is in seconds since 1970."""
    payload = {**claims, "iat": int(now) - BACKDATED_SECONDS, "exp": int(now) + ttl_s}
    return signed(key, algorithm, payload, {} if kid is None else {"kid": kid})


def signed(key: Any, algorithm: str, claims: dict[str, Any], header: dict[str, Any]) -> bytes:
    """Return a compact token with these claims. `header` adds header parameters beside `alg` and `typ`."""
    import jwt

    return jwt.encode(claims, key, algorithm, headers=header).encode()
