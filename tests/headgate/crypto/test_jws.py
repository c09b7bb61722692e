"""Tokens: vectors of the RFCs, every algorithm, and what claims must say."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from headgate.crypto.jwks import parse_jwks
from headgate.crypto.jws import ALGORITHMS, LEEWAY_SECONDS, Checks, TokenError, UnknownKey, header_of, verify

# RFC 7515 appendix A.2 and A.3: the payload is the same, and expires at 1300819380.
PAYLOAD = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
A2_KEY = {
    "kty": "RSA",
    "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2l"
    "ZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2C"
    "apHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb5"
    "4h4FRWyuXpoQ",
    "e": "AQAB",
}
A2_SIGNATURE = (
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t"
    "1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12j"
    "zDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQ"
    "Ge77Rw"
)
A3_KEY = {"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
          "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}  # fmt: skip
A3_SIGNATURE = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
JOE = Checks("joe")
BEFORE = 1_300_819_000.0


def keys(*entries: dict[str, Any]) -> Any:
    return parse_jwks(json.dumps({"keys": entries}))


@pytest.mark.parametrize(
    ("header", "signature", "key"),
    [("eyJhbGciOiJSUzI1NiJ9", A2_SIGNATURE, A2_KEY), ("eyJhbGciOiJFUzI1NiJ9", A3_SIGNATURE, A3_KEY)],
    ids=["RFC 7515 A.2", "RFC 7515 A.3"],
)
def test_vectors(header: str, signature: str, key: dict[str, Any]) -> None:
    token = f"{header}.{PAYLOAD}.{signature}".encode()
    found = verify(token, keys(key), JOE, BEFORE)
    assert found == {"iss": "joe", "exp": 1300819380, "http://example.com/is_root": True}
    with pytest.raises(TokenError, match="has expired"):
        verify(token, keys(key), JOE, 1300819380 + LEEWAY_SECONDS + 1)
    for place in (0, 40, -1):
        changed = f"{header}.{PAYLOAD}.{signature[:place]}{'A' if signature[place] != 'A' else 'g'}"
        changed += signature[place + 1 :] if place != -1 else ""
        with pytest.raises(TokenError, match="signature is not valid"):
            verify(changed.encode(), keys(key), JOE, BEFORE)
    with pytest.raises(UnknownKey):
        verify(token, keys(A3_KEY if key is A2_KEY else A2_KEY), JOE, BEFORE)


@pytest.mark.parametrize(
    "token",
    [
        # RFC 7519 sections 3.1 and 6.1, RFC 7515 A.5: a symmetric key, and no signature at all.
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." + PAYLOAD + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        "eyJhbGciOiJub25lIn0." + PAYLOAD + ".",
    ],
)
def test_vectors_that_are_refused(token: str) -> None:
    with pytest.raises(TokenError, match="algorithm is not allowed"):
        verify(token.encode(), keys(A2_KEY, A3_KEY), JOE, BEFORE)


RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PRIVATE: dict[str, Any] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), RSA),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def public(algorithm: str, **more: Any) -> dict[str, Any]:
    kind: Any = jwt.algorithms.get_default_algorithms()[algorithm]
    return {**kind.to_jwk(PRIVATE[algorithm].public_key(), as_dict=True), **more}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm(algorithm: str) -> None:
    token = jwt.encode({"iss": "joe", "exp": 2e9}, PRIVATE[algorithm], algorithm, headers={"kid": "k"}).encode()
    assert verify(token, keys(public(algorithm, kid="k")), JOE, 1e9)["iss"] == "joe"
    # An `alg` in the key narrows it to that one.
    other = "RS512" if algorithm != "RS512" else "RS256"
    if algorithm in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"):
        with pytest.raises(TokenError, match="does not fit its key"):
            verify(token, keys(public(algorithm, kid="k", alg=other)), JOE, 1e9)


def test_a_token_without_kid_needs_one_key_that_fits() -> None:
    token = jwt.encode({"iss": "joe", "exp": 2e9}, PRIVATE["ES256"], "ES256").encode()
    assert verify(token, keys(public("ES256", kid="a"), public("RS256", kid="b")), JOE, 1e9)
    with pytest.raises(UnknownKey):
        verify(token, keys(public("ES256", kid="a"), public("ES256", kid="b")), JOE, 1e9)


def unsigned(claims: Any) -> dict[str, Any]:
    token = jwt.encode(claims, RSA, "RS256")
    return verify(token.encode(), keys(public("RS256")), CHECKS, 1e9)


CHECKS = Checks("joe", ("api", "web"), frozenset(("exp", "sub")))
GOOD: dict[str, Any] = {"iss": "joe", "exp": 2e9, "sub": "ada", "aud": "api"}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, ""),
        ({"aud": ["x", "web"]}, ""),
        ({"exp": 1e9 - LEEWAY_SECONDS + 1}, ""),
        ({"nbf": 1e9 + LEEWAY_SECONDS - 1}, ""),
        ({"exp": 1e9 - LEEWAY_SECONDS - 1}, "has expired"),
        ({"nbf": 1e9 + LEEWAY_SECONDS + 1}, "not valid yet"),
        ({"iss": "eve"}, "another issuer"),
        ({"iss": ["joe"]}, "another issuer"),
        ({"aud": "x"}, "another audience"),
        ({"aud": [1, None]}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"sub": None}, "no claim 'sub'"),
        ({"exp": None}, "no claim 'exp'"),
        ({"exp": True}, "not a time"),
        ({"exp": "2e9"}, "not a time"),
    ],
)
def test_claims(change: dict[str, Any], fault: str) -> None:
    raw = [json.dumps(part).encode() for part in ({"alg": "RS256"}, {**GOOD, **change})]
    signing = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in raw)
    signature = jwt.algorithms.get_default_algorithms()["RS256"].sign(signing, RSA)
    token = signing + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")
    if not fault:
        assert verify(token, keys(public("RS256")), CHECKS, 1e9)["sub"] == "ada"
        return
    with pytest.raises(TokenError, match=fault):
        verify(token, keys(public("RS256")), CHECKS, 1e9)


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c.d", "....", "e30.e30.", "W10.e30.x", "=.=.=", "e30=.e30.x", "e30.e30=.x", "e30.e30.x=", "e30.e30.+", "e30.e30./", "e30.e30. x"])
def test_what_is_no_token(text: str) -> None:
    with pytest.raises(TokenError):
        header_of(text.encode())
