"""Key sets: which keys count, and that a bad one spoils only itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from headgate.crypto.jwks import MAX_BYTES, MAX_KEYS, parse_jwks


def rsa_key(bits: int = 2048, **more: Any) -> dict[str, Any]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return {**RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), **more}


GOOD = rsa_key(kid="good")
# RFC 8037 appendix A.2, RFC 7517 appendix A.1.
ED25519 = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
P256 = {"kty": "EC", "crv": "P-256", "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
        "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM", "use": "enc", "kid": "1"}  # fmt: skip
BAD: dict[str, tuple[Any, str]] = {
    "symmetric": ({"kty": "oct", "k": "c2VjcmV0", "kid": "b"}, "not for verification"),
    "short": (rsa_key(1024, kid="b"), "less than 2048 bits"),
    "for encryption": (P256, "not a key for signatures"),
    "operations": ({**GOOD, "key_ops": ["encrypt"]}, "not a key for signatures"),
    "algorithm": ({**GOOD, "alg": "ES256"}, "does not fit the key"),
    "curve": ({**P256, "use": "sig", "crv": "P-521"}, "not for verification"),
    "not on the curve": ({**P256, "use": "sig", "y": P256["x"]}, ""),
    "no modulus": ({"kty": "RSA", "e": "AQAB"}, ""),
    "kid": ({**GOOD, "kid": 5}, "kid is not a string"),
    "a list": ([], "not an object"),
    "a text": ("x", "not an object"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_key_spoils_only_itself(name: str) -> None:
    entry, reason = BAD[name]
    found = parse_jwks(json.dumps({"keys": [entry, GOOD]}))
    assert [key.kid for key in found.keys] == ["good"]
    assert len(found.skipped) == 1
    assert reason in found.skipped[0]


def test_vectors_and_what_they_may_verify() -> None:
    found = parse_jwks(json.dumps({"keys": [ED25519, {**P256, "use": "sig"}, {**GOOD, "alg": "PS384"}]}))
    assert [sorted(key.algorithms) for key in found.keys] == [["EdDSA"], ["ES256"], ["PS384"]]
    assert found.skipped == ()
    assert parse_jwks(json.dumps(GOOD)).knows("good"), "a key alone is a set of one"


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", '{"keys": 1}', "[" * 100_000, "null"])
def test_what_is_no_set(text: str) -> None:
    with pytest.raises(ValueError, match="key set"):
        parse_jwks(text)


def test_sets_have_a_limit() -> None:
    with pytest.raises(ValueError, match="too large"):
        parse_jwks(" " * (MAX_BYTES + 1))
    assert len(parse_jwks(json.dumps({"keys": [GOOD] * (MAX_KEYS + 5)})).keys) == MAX_KEYS


def test_private_parts_are_left_behind() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    entry = {name: value for name, value in RSAAlgorithm.to_jwk(key, as_dict=True).items() if name != "key_ops"}
    assert "d" in entry
    found = parse_jwks(json.dumps(entry))
    assert not hasattr(found.keys[0].public, "private_numbers")
