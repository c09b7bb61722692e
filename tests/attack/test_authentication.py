"""Credentials that are none: tokens, passwords, keys and sessions that somebody made, spoilt or borrowed (CWE-287, CWE-347; see README.md)."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.attack.exhaustion_rig import connected
from tests.attack.recording_rig import Bystander, Reader, Recording
from tests.end_to_end.identity_rig import EC_KEY, ISSUER, RSA_KEY, jwk, token
from tests.end_to_end.running import Gateway

# The password of `ada` is `pass`; that of `bob` has 72 times `b`, which is as much as bcrypt reads.
HTPASSWD = "ada:{SHA}nU4eI71bcnBGqeO0t9tXvY1u5oQ=\\nlong:{SHA}" + base64.b64encode(hashlib.sha1(b"b" * 72).digest()).decode()
# Each key is for one algorithm (RFC 8725 section 3.1).
JWKS = json.dumps({"keys": [{**jwk(RSA_KEY, "r1", "RS256"), "alg": "RS256"}, {**jwk(EC_KEY, "e1", "ES256"), "alg": "ES256"}]})
CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: jwt
  matches: [{path: {pathPrefix: /jwt}}]
  policies: {jwtAuth: {issuer: ISSUER, audiences: [api], jwks: 'JWKS', mode: strict}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: basic
  matches: [{path: {pathPrefix: /basic}}]
  policies: {basicAuth: {htpasswd: "HTPASSWD", mode: strict}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: key
  matches: [{path: {pathPrefix: /key}}]
  policies: {apiKey: {mode: strict, keys: [{key: the-Key-0123456789}, {keyHash: "sha256:HASH"}]}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: query
  matches: [{path: {pathPrefix: /query}}]
  policies: {apiKey: {mode: strict, keys: [{key: the-Key-0123456789}], location: {queryParameter: {name: k}}}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- {name: rest, matches: [{path: {pathPrefix: /bystander}}], backends: [{host: "127.0.0.1:BACKEND"}]}
"""


@pytest.fixture(scope="module")
def running(serving: Callable[..., Gateway], recording: Recording) -> Gateway:
    places = {"ISSUER": ISSUER, "JWKS": JWKS, "BACKEND": str(recording.port), "HTPASSWD": HTPASSWD, "HASH": hashlib.sha256(b"hashed-Key").hexdigest()}
    text = CONFIG
    for name, value in places.items():
        text = text.replace(name, value)
    return serving(text)


def part(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def lasting(*words: Any, **claims: Any) -> str:
    """Of a token that does not expire: it is made when the file is read, minutes before a whole run comes to it."""
    return token(*words, **{"exp": 4_000_000_000, **claims})


CLAIMS = {"iss": ISSUER, "aud": "api", "sub": "ada", "exp": 4_000_000_000}
GOOD = lasting()
HEAD, BODY, SIGNATURE = GOOD.split(".")
PEM = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
SIGNER = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256)
STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
DER = RSA_KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def mac(head: dict[str, Any], secret: bytes, claims: dict[str, Any] = CLAIMS) -> str:
    """A token with an HMAC."""
    text = f"{part(head)}.{part(claims)}"
    return f"{text}.{part(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


def signed(head: dict[str, Any], **claims: Any) -> str:
    """A token that is signed as it should be, whatever its head says besides."""
    text = f"{part({'alg': 'RS256', 'kid': 'r1', **head})}.{part({**CLAIMS, **claims})}"
    return f"{text}.{part(SIGNER.sign(text.encode(), RSA_KEY))}"


def raw_claims(text: str) -> str:
    """A token whose claims are this text, well signed."""
    data = f"{part({'alg': 'RS256', 'kid': 'r1'})}.{part(text.encode())}"
    return f"{data}.{part(SIGNER.sign(data.encode(), RSA_KEY))}"


JWK_OF_MINE = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA_KEY.public_key()))
TOKENS = {
    # RFC 7519 section 6; CVE-2015-9235, CVE-2018-1000531, CVE-2020-28042: no signature, in all spellings.
    **{f"alg {alg!r}": f"{part({'alg': alg, 'typ': 'JWT'})}.{part(CLAIMS)}." for alg in ("none", "None", "NONE", "nOnE", "", " none", "none\x00", None, 0, [], ["RS256"], {})},
    "alg none and a kid": f"{part({'alg': 'none', 'kid': 'r1'})}.{part(CLAIMS)}.",
    "alg none, the old signature": f"{part({'alg': 'none', 'kid': 'r1'})}.{BODY}.{SIGNATURE}",
    "no alg": f"{part({'kid': 'r1'})}.{part(CLAIMS)}.{SIGNATURE}",
    "no signature": f"{HEAD}.{BODY}.", "two parts": f"{HEAD}.{BODY}", "no head": f".{BODY}.{SIGNATURE}", "no body": f"{HEAD}..{SIGNATURE}",
    "four parts": f"{GOOD}.x", "five parts, a JWE": f"{part({'alg': 'dir', 'enc': 'A256GCM'})}....", "dots": "....", "a dot": ".",
    # RFC 8725 section 3.1; CVE-2016-5431, CVE-2016-10555: the public key as the secret of an HMAC.
    **{f"HS256 of {name}": mac({"alg": "HS256", "kid": "r1"}, secret) for name, secret in {"the PEM": PEM, "the PEM, stripped": PEM.strip(), "the DER": DER,
       "the modulus": JWK_OF_MINE["n"].encode(), "the set": JWKS.encode(), "nothing": b"", "zeros": b"\x00" * 32}.items()},
    "HS256 and no kid": mac({"alg": "HS256"}, PEM), "hs256": mac({"alg": "hs256", "kid": "r1"}, PEM),
    # CVE-2022-21449 (zeros as an ECDSA signature), CVE-2025-27370 (another kind of key).
    "ES256 of zeros": f"{part({'alg': 'ES256', 'kid': 'e1'})}.{part(CLAIMS)}.{part(bytes(64))}",
    "ES256 of ones": f"{part({'alg': 'ES256', 'kid': 'e1'})}.{part(CLAIMS)}.{part(bytes([255]) * 64)}",
    "ES256, DER": f"{part({'alg': 'ES256', 'kid': 'e1'})}.{part(CLAIMS)}.{part(bytes.fromhex('3006020100020100'))}",
    "ES256 with the key of RS256": lasting(EC_KEY, "r1", "ES256"), "RS256 with the key of ES256": lasting(RSA_KEY, "e1"),
    "RS512 of the key of RS256": lasting(RSA_KEY, "r1", "RS512"), "PS256 of it": lasting(RSA_KEY, "r1", "PS256"),
    # RFC 8725 sections 3.5, 3.10; CVE-2018-0114 (the key in the token), SSRF by jku and x5u; kid as a path or a query.
    **{f"signed by a stranger, {name}": jwt.encode(CLAIMS, STRANGER, "RS256", headers={"kid": "r1", **more}) for name, more in {
        "as it is": {}, "jwk": {"jwk": json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(STRANGER.public_key()))}, "jku": {"jku": "http://127.0.0.1:1/jwks"},
        "x5u": {"x5u": "http://127.0.0.1:1/x"}, "x5c": {"x5c": [base64.b64encode(DER).decode()]}}.items()},
    **{f"kid {kid!r:.40}": f"{part({'alg': 'RS256', 'kid': kid})}.{BODY}.{SIGNATURE}" for kid in ("../../dev/null", "/dev/null", "r1' OR '1'='1", "r1\x00", "R1", "", "x" * 5000, None, 1, ["r1"], {"a": 1}, True)},
    # RFC 7515 section 4.1.11: what must be understood and is not.
    "crit": signed({"crit": ["exp"]}), "crit of an unknown": signed({"crit": ["urn:x"], "urn:x": 1}), "crit empty": signed({"crit": []}),
    "b64 false (RFC 7797)": signed({"crit": ["b64"], "b64": False}),
    # Claims.
    "expired": lasting(exp=time.time() - 120), "not yet": lasting(nbf=3_900_000_000), "another issuer": lasting(iss="https://evil.test"),
    "an issuer that begins alike": lasting(iss=f"{ISSUER}.evil.test"), "no issuer": lasting(iss=None), "another audience": lasting(aud="apis"), "no audience": lasting(aud=None),
    "an empty audience": lasting(aud=[]), "an audience in an object": signed({}, aud={"api": 1}), "exp as text": signed({}, exp="4000000000"),
    "exp true": signed({}, exp=True), "exp null": signed({}, exp=None), "exp in a list": signed({}, exp=[4_000_000_000]), "exp below zero": signed({}, exp=-1),
    "exp NaN": raw_claims(json.dumps(CLAIMS).replace("4000000000", "NaN")), "exp beyond all": raw_claims(json.dumps(CLAIMS).replace("4000000000", "-1e999")),
    "issuer in a list": signed({}, iss=[ISSUER]), "claims in a list": raw_claims(json.dumps([CLAIMS])), "claims of text": raw_claims('"x"'), "no claims": raw_claims(""),
    "deep claims": raw_claims("[" * 5000 + "]" * 5000), "claims twice, the bad one last": raw_claims(json.dumps(CLAIMS)[:-1] + ', "iss": "https://evil.test"}'),
    # Bytes.
    "a letter changed": GOOD[:-8] + ("A" if GOOD[-8] != "A" else "B") + GOOD[-7:], "another body": f"{HEAD}.{part({**CLAIMS, 'sub': 'root'})}.{SIGNATURE}",
    "padded": f"{HEAD}.{BODY}.{SIGNATURE}==", "a line feed in base64": f"{HEAD}.{BODY}.{SIGNATURE[:20]}%0a{SIGNATURE[20:]}", "a quote": f'"{GOOD}"', "twice": f"{GOOD},{GOOD}",
    "a space inside": f"{HEAD}. {BODY}.{SIGNATURE}", "base64 of the other alphabet": f"{HEAD}.{BODY}.+{SIGNATURE[1:]}", "huge": "A" * 8000 + f".{BODY}.{SIGNATURE}",
    "not even ASCII": f"{HEAD}.{BODY}.\xe9{SIGNATURE[1:]}", "nothing": "",
}  # fmt: skip
SCHEMES = {
    "another scheme": f"Basic {GOOD}", "no scheme": GOOD, "a scheme that begins alike": f"Bearerx {GOOD}", "a tab": f"Bearer\t{GOOD}", "a colon": f"Bearer: {GOOD}",
    "only the scheme": "Bearer", "the scheme and a blank": "Bearer ", "two schemes": f"Bearer Bearer {GOOD}",
}  # fmt: skip
BASIC = {
    "no colon": b"ada", "no user": b":pass", "no password": b"ada:", "nothing": b"", "another password": b"ada:Pass", "a longer one": b"ada:pass ", "a shorter one": b"ada:pas",
    "NUL behind it": b"ada:pass\x00", "NUL in the user": b"ada\x00:pass", "another user": b"Ada:pass", "a line feed": b"ada:pass\n", "a user of two lines": b"x\nada:pass",
    "the hash for the password": b"ada:{SHA}nU4eI71bcnBGqeO0t9tXvY1u5oQ=",
    "more than 72 bytes": b"long:" + b"b" * 73, "less": b"long:" + b"b" * 71, "a colon more": b"ada::pass", "not UTF-8": b"ada:\xff\xfe", "6,000 bytes": b"ada:" + b"p" * 6000,
}  # fmt: skip
KEYS = {
    "nothing": "", "a blank": " ", "the start": "the-Key", "more": "the-Key-0123456789x", "in capitals": "THE-KEY-0123456789", "quoted": '"the-Key-0123456789"', "twice": "the-Key-0123456789, the-Key-0123456789",
    "the hash": hashlib.sha256(b"hashed-Key").hexdigest(), "the hash as configured": "sha256:" + hashlib.sha256(b"hashed-Key").hexdigest(), "encoded": "the%2DKey-0123456789", "a star": "*", "null": "null",
    "4,000 letters": "k" * 4000, "not ASCII": "the-Key-0123456789\xa0",
}  # fmt: skip


def statuses(running: Gateway, path: str, *fields: str, query: str = "") -> list[int]:
    """Of the answers to one request; the client goes on listening while a policy waits."""
    lines = "".join(f"{one}\r\n" for one in fields)
    reader = Reader(responses=True)
    with connected(running.port) as client:
        client.sendall(f"GET {path}{query} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{lines}\r\n".encode("latin-1"))
        with contextlib.suppress(ConnectionResetError):
            while data := client.recv(65536):
                reader.rest += data
    found = []
    while reader.rest and (answer := reader.read(ended=True)) is not None:
        found.append(int(answer.start[0]))
    return found


def test_no_token_that_somebody_made_passes(running: Gateway, recording: Recording) -> None:
    before = len(recording.arrived)
    assert statuses(running, "/jwt", f"authorization: Bearer {GOOD}") == [200]
    assert statuses(running, "/jwt", f"authorization: bearer {GOOD}") == [200], "RFC 9110 section 11.1: in any case"
    assert statuses(running, "/jwt", f"authorization: Bearer {signed({})}") == [200], "what the table spoils is good"
    wrong = {}
    for name, text in TOKENS.items():
        # What could not be signed twice is tried once more: what is refused must not be remembered as good, nor what was good.
        for _ in range(2):
            if (found := statuses(running, "/jwt", f"authorization: Bearer {text}")) not in ([401], [400], [431]):
                wrong[name] = found
    for name, text in SCHEMES.items():
        if (found := statuses(running, "/jwt", f"authorization: {text}")) not in ([401], [400]):
            wrong[name] = found
    for name, fields in {"two fields": (f"Bearer {GOOD}", f"Bearer {GOOD}"), "a bad one behind": (f"Bearer {GOOD}", "Bearer x"), "a bad one before": ("Bearer x", f"Bearer {GOOD}")}.items():
        if (found := statuses(running, "/jwt", *(f"authorization: {one}" for one in fields))) not in ([401], [400]):
            wrong[name] = found
    for query in (f"?access_token={GOOD}", f"?authorization=Bearer%20{GOOD}"):
        if (found := statuses(running, "/jwt", query=query)) != [401]:
            wrong[query[:20]] = found
    assert not wrong, wrong
    assert len(recording.arrived) == before + 3, "a backend was asked"
    assert statuses(running, "/jwt", f"authorization: Bearer {GOOD}") == [200]


def test_no_password_but_the_right_one_passes(running: Gateway, recording: Recording) -> None:
    def basic(raw: bytes) -> str:
        return f"authorization: Basic {base64.b64encode(raw).decode()}"

    before = len(recording.arrived)
    assert statuses(running, "/basic", basic(b"ada:pass")) == [200]
    assert statuses(running, "/basic", basic(b"long:" + b"b" * 72)) == [200]
    wrong = {name: found for name, raw in BASIC.items() if (found := statuses(running, "/basic", basic(raw))) not in ([401], [400])}
    good = base64.b64encode(b"ada:pass").decode()
    texts = (f"Basic {good[:-1]}", f"Basic {good}!", f"Basic !{good}", f"Basic  {good} x", f"Basic,{good}", f"Bearer {good}", good, "Basic", "Basic =", f"Basic {good} {good}", f"Basic {good},Basic {good}")
    wrong |= {text: found for text in texts if (found := statuses(running, "/basic", f"authorization: {text}")) not in ([401], [400])}
    found = statuses(running, "/basic", basic(b"ada:pass"), basic(b"ada:x"))
    assert found in ([401], [400]), found
    assert not wrong, wrong
    assert len(recording.arrived) == before + 2, "a backend was asked"


def test_no_key_but_the_right_one_passes(running: Gateway, recording: Recording) -> None:
    before = len(recording.arrived)
    for key in ("the-Key-0123456789", "hashed-Key"):
        assert statuses(running, "/key", f"authorization: Bearer {key}") == [200]
    assert statuses(running, "/query", query="?k=the-Key-0123456789") == [200]
    wrong = {name: found for name, key in KEYS.items() if (found := statuses(running, "/key", f"authorization: Bearer {key}")) not in ([401], [400])}
    queries = ("", "?", "?k", "?k=", "?K=the-Key-0123456789", "?k=the-Key-012345678", "?k=the-Key-0123456789&k=x", "?k=x&k=the-Key-0123456789", "?a=1;k=the-Key-0123456789",
               "?k=the-Key-0123456789%00", "?k=the-Key-0123456789%20", "?k[]=the-Key-0123456789", "?%6b%3dthe-Key-0123456789")  # fmt: skip
    wrong |= {query: found for query in queries if (found := statuses(running, "/query", query=query)) not in ([401], [400])}
    assert not wrong, wrong
    assert len(recording.arrived) == before + 3, "a backend was asked"
    bystander = Bystander(running.port)
    bystander.ask()
    bystander.close()
