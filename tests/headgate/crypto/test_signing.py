"""Tokens made for backends: every algorithm is read by PyJWT with the public key."""

from __future__ import annotations

from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from headgate.crypto.signing import sign, signing_key

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
P256, P384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
KEYS: dict[str, Any] = {"RS256": RSA, "RS384": RSA, "RS512": RSA, "PS256": RSA, "ES256": P256, "ES384": P384}


def pem(key: Any, shape: PrivateFormat = PrivateFormat.PKCS8) -> str:
    return key.private_bytes(Encoding.PEM, shape, NoEncryption()).decode()


@pytest.mark.parametrize("algorithm", KEYS)
@pytest.mark.parametrize("shape", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_every_algorithm(algorithm: str, shape: PrivateFormat) -> None:
    key = signing_key(pem(KEYS[algorithm], shape), algorithm)
    token = sign(key, algorithm, {"sub": "gate"}, ttl_s=60, now=4e9, kid="k1")
    assert jwt.get_unverified_header(token) == {"alg": algorithm, "typ": "JWT", "kid": "k1"}
    options: Any = {"verify_iat": False}
    claims = jwt.decode(token, KEYS[algorithm].public_key(), [algorithm], options=options)
    assert claims == {"sub": "gate", "iat": 4_000_000_000 - 10, "exp": 4_000_000_060}


@pytest.mark.parametrize(
    ("text", "algorithm", "reason"),
    [
        (pem(P256), "RS256", "needs an RSA key"),
        (pem(rsa.generate_private_key(public_exponent=65537, key_size=1024)), "RS256", "at least 2048 bits"),
        (pem(P256), "ES384", "secp384r1"),
        (pem(P384), "ES256", "secp256r1"),
        (pem(RSA), "ES256", "secp256r1"),
        (pem(ed25519.Ed25519PrivateKey.generate()), "ES256", "secp256r1"),
        ("CANARY", "RS256", "not an unencrypted PEM"),
        (RSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")).decode(), "RS256", "PEM"),
    ],
)
def test_keys_that_do_not_fit(text: str, algorithm: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as found:
        signing_key(text, algorithm)
    assert "CANARY" not in str(found.value)
    assert "PRIVATE" not in str(found.value)
