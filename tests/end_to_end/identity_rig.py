"""What tests of identity and others share."""

from __future__ import annotations

import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ISSUER = "https://idp.test"


def jwk(key: Any, kid: str, algorithm: str) -> dict[str, Any]:
    kind = jwt.algorithms.RSAAlgorithm if algorithm.startswith(("RS", "PS")) else jwt.algorithms.ECAlgorithm
    return {**json.loads(kind.to_jwk(key.public_key())), "kid": kid, "use": "sig"}

JWKS = json.dumps({"keys": [jwk(RSA_KEY, "r1", "RS256"), jwk(EC_KEY, "e1", "ES256")]})


def token(key: Any = RSA_KEY, kid: str | None = "r1", algorithm: str = "RS256", **claims: Any) -> str:
    payload = {"iss": ISSUER, "aud": "api", "sub": "ada", "exp": time.time() + 60, **claims}
    payload = {name: value for name, value in payload.items() if value is not None}
    return jwt.encode(payload, key, algorithm, headers={} if kid is None else {"kid": kid})
