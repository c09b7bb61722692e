"""A key set and a token that it vouches for, made once per run."""

from __future__ import annotations

import json
from functools import cache

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

ISSUER = "https://idp.bench"


@cache
def key() -> rsa.RSAPrivateKey:
    """The signing key of this run."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def key_set() -> str:
    """The public half as a JWKS document."""
    public = jwt.algorithms.RSAAlgorithm.to_jwk(key().public_key())
    return json.dumps({"keys": [{**json.loads(public), "kid": "bench", "alg": "RS256"}]})


@cache
def token() -> str:
    """A token with the claims that the rule of the policies case asks for."""
    claims = {"iss": ISSUER, "sub": "ada", "groups": ["dev", "ops", "admin"], "exp": 4_000_000_000}
    return jwt.encode(claims, key(), "RS256", headers={"kid": "bench"})
