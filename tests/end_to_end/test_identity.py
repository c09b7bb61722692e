"""Authentication and authorization from the configuration file to the wire, attacks included."""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.end_to_end.asking import ask
from tests.end_to_end.identity_rig import EC_KEY, ISSUER, JWKS, RSA_KEY, jwk, token

from headgate.policy.key_sets import LEAST_PAUSE

pytestmark = pytest.mark.warm

# -- who may come in -----------------------------------------------------------------------------------------------------





JWT = f"""
jwtAuth:
  issuer: {ISSUER}
  audiences: [api]
  jwks: '{JWKS}'
  mode: %s
"""




def bearer(text: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}"}


def test_jwt_and_authorization(policies) -> None:
    running = policies(JWT % "strict" + """
authorization:
  rules: ['"admin" in jwt.groups', {deny: 'jwt.sub == "eve"'}, {require: request.method == "GET"}]
transformations: {request: {set: {x-sub: jwt.sub}}}
""")
    missing = ask(running)
    assert missing.status == 401
    assert json.loads(missing.body) == {"error": "unauthorized", "error_description": "JWT token required"}
    assert missing.headers["www-authenticate"] == "Bearer"
    for _ in range(2):       # verified, then remembered
        answer = ask(running, headers=bearer(token(groups=["admin"])))
        assert answer.status == 200
        assert answer.got("x-sub") == ["ada"]
        assert answer.got("authorization") == []
    same = token(EC_KEY, "e1", "ES256", groups=["admin"])
    assert [ask(running, headers=bearer(same)).status for _ in range(3)] == [200] * 3
    for claims, method in (({"groups": ["dev"]}, "GET"), ({"groups": ["admin"], "sub": "eve"}, "GET"),
                           ({"groups": ["admin"]}, "DELETE"), ({}, "GET")):  # fmt: skip
        refused = ask(running, method, headers=bearer(token(**claims)))
        assert (refused.status, refused.body) == (403, b""), claims


def forged(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"x") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts).decode()


CLAIMS = {"iss": ISSUER, "aud": "api", "exp": 4_000_000_000}
DEEP = "[" * 5000 + "]" * 5000
BAD_TOKENS = {
    "expired": token(exp=time.time() - 3600),
    "not yet valid": token(nbf=time.time() + 3600),
    "other issuer": token(iss="https://other.test"),
    "other audience": token(aud="web"),
    "no expiry": token(exp=None),
    "unknown key": token(kid="r2"),
    "no kid, the other algorithm": token(EC_KEY, None, "ES256", iss="x"),
    "key of another": token(rsa.generate_private_key(public_exponent=65537, key_size=2048)),
    "alg none": forged({"alg": "none"}, CLAIMS, b""),
    "alg None": forged({"alg": "None", "kid": "r1"}, CLAIMS, b""),
    "key confusion": forged({"alg": "HS256", "kid": "r1"}, CLAIMS),
    "wrong algorithm for the key": forged({"alg": "ES256", "kid": "r1"}, CLAIMS),
    "kid injection": forged({"alg": "RS256", "kid": "../../dev/null' OR 1=1"}, CLAIMS),
    "kid is no text": forged({"alg": "RS256", "kid": {"a": 1}}, CLAIMS),
    "embedded key": forged({"alg": "RS256", "jwk": jwk(EC_KEY, "x", "ES256"), "jku": "http://evil.test"}, CLAIMS),
    "crit": forged({"alg": "RS256", "kid": "r1", "crit": ["x"], "x": 1}, CLAIMS),
    "huge": token(pad="x" * 20_000),
    "deep": token(pad="x")[:20] + "." + base64.urlsafe_b64encode(DEEP.encode()).decode().rstrip("=") + ".x",
    "two parts": "a.b",
    "four parts": "a.b.c.d",
    "noise": "\x80\x81",
}


def test_bad_tokens_are_refused_alike(policies) -> None:
    strict, lenient = policies(JWT % "strict"), policies(JWT % "permissive")
    optional = policies(JWT % "optional")
    for name, text in BAD_TOKENS.items():
        headers = bearer(text.encode("latin-1").decode("latin-1"))
        answer = ask(strict, headers=headers)
        assert (answer.status, json.loads(answer.body)["error"]) == (401, "unauthorized"), name
        assert 'error="invalid_token"' in answer.headers["www-authenticate"], name
        assert ask(optional, headers=headers).status == 401, name
        passed = ask(lenient, headers=headers)
        assert passed.status == 200, name
        assert len(passed.got("authorization")) == 1, name
    assert ask(optional).status == 200
    assert "Traceback" not in strict.log() + lenient.log() + optional.log()


def test_two_credentials_are_refused(policies, send_raw) -> None:
    running = policies(JWT % "strict")
    good = token()
    data = f"GET /api HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {good}\r\nauthorization: Bearer {good}\r\nconnection: close\r\n\r\n"
    assert send_raw(running.port, data.encode()).startswith(b"HTTP/1.1 401")


def test_tokens_elsewhere(policies) -> None:
    running = policies(JWT % "strict" + "  location: {queryParameter: {name: access}}\n")
    answer = ask(running, path=f"/api/x?a=1&access={token()}&b=2")
    assert (answer.status, answer.seen["path"]) == (200, "/api/x?a=1&b=2")
    cookie = policies(JWT % "strict" + "  location: {cookie: {name: session}}\n")
    answer = ask(cookie, headers={"cookie": f"a=1; session={token()}; b=2"})
    assert (answer.status, answer.got("cookie")) == (200, ["a=1; b=2"])
    computed = policies(JWT % "strict" + "  location: {expression: 'request.headers[\"x-token\"]'}\n")
    assert ask(computed, headers={"x-token": token()}).status == 200
    assert ask(computed).status == 401


class Keys(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    document = b"{}"
    calls = 0
    mode = "good"
    over = threading.Event()

    def do_GET(self) -> None:
        type(self).calls += 1
        if self.mode == "hang":
            self.over.wait(100)
        status = 302 if self.mode == "redirect" else 500 if self.mode == "error" else 200
        self.send_response(status)
        if self.mode == "redirect":
            self.send_header("location", "/elsewhere")
        if self.mode == "endless":
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
            except OSError:
                return
        self.send_header("content-length", str(len(self.document)))
        self.end_headers()
        self.wfile.write(self.document)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def key_server():
    handler = type("Handler", (Keys,), {"over": threading.Event()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], handler
    handler.over.set()
    server.shutdown()


REMOTE = f"""
jwtAuth:
  issuer: {ISSUER}
  jwks: {{url: "http://127.0.0.1:%d/keys"}}
"""


def test_remote_keys_are_fetched_and_follow_a_rotation(policies, key_server) -> None:
    port, handler = key_server
    handler.document = json.dumps({"keys": [jwk(RSA_KEY, "r1", "RS256"), {"kty": "oct", "k": "eA"}]}).encode()
    running = policies(REMOTE % port)
    deadline = time.monotonic() + 40
    while ask(running, headers=bearer(token())).status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    first = handler.calls
    assert ask(running, headers=bearer(token(EC_KEY, "e1", "ES256"))).status == 401
    handler.document = json.dumps({"keys": [jwk(EC_KEY, "e1", "ES256")]}).encode()
    deadline = time.monotonic() + 40
    while ask(running, headers=bearer(token(EC_KEY, "e1", "ES256"))).status != 200:
        assert time.monotonic() < deadline, "the new key is never fetched"
        time.sleep(0.5)
    # Unknown keys cause a fetch every few seconds at most, however many tokens name them.
    before, start = handler.calls, time.monotonic()
    for number in range(30):
        assert ask(running, headers=bearer(token(kid=f"x{number}"))).status == 401
    assert handler.calls - before <= 2 + (time.monotonic() - start) // LEAST_PAUSE
    assert first >= 1
    # The key that is gone does not count any more, though its token was remembered.
    assert ask(running, headers=bearer(token())).status == 401


@pytest.mark.parametrize("mode", ["hang", "redirect", "error", "endless"])
def test_a_bad_key_server_stops_nothing(policies, key_server, mode: str) -> None:
    port, handler = key_server
    handler.mode = mode
    running = policies(REMOTE % port + "  mode: optional\n")
    assert ask(running).status == 200
    # The server that hangs does so for as long as the test lasts.
    assert ask(running, headers=bearer(token())).status == 401
    assert ask(running).status == 200


def test_api_keys(policies) -> None:
    import hashlib

    hashed = hashlib.sha256(b"other").hexdigest()
    running = policies(f"""
apiKey:
  keys:
  - {{key: canary-key, metadata: {{team: red}}}}
  - {{keyHash: "sha256:{hashed}", metadata: {{team: blue}}}}
  location: {{header: {{name: x-api-key}}}}
authorization: {{rules: ['apiKey.team == "red"']}}
transformations: {{request: {{set: {{x-team: apiKey.team}}}}}}
""")
    answer = ask(running, headers={"x-api-key": "canary-key"})
    assert (answer.status, answer.got("x-team"), answer.got("x-api-key")) == (200, ["red"], [])
    assert ask(running, headers={"x-api-key": "other"}).status == 403
    missing, wrong = ask(running), ask(running, headers={"x-api-key": "nope"})
    assert (missing.status, missing.body) == (401, b"api key authentication failure: no API Key found")
    assert (wrong.status, wrong.body) == (401, b"api key authentication failure: invalid credentials")
    assert "canary-key" not in running.log()


def test_basic_authentication(policies) -> None:
    from passlib.hash import apr_md5_crypt, bcrypt, des_crypt, ldap_sha1, sha512_crypt

    hashes = {"apr": apr_md5_crypt.hash("pw-apr"), "bc": bcrypt.using(rounds=4).hash("pw-bc"),
              "des": des_crypt.hash("pw-des"), "sha": ldap_sha1.hash("pw-sha"), "s5": sha512_crypt.hash("pw-s5")}  # fmt: skip
    lines = "\n".join(f"    {name}:{text}" for name, text in hashes.items()).replace("$", "$$")
    running = policies(f"""
basicAuth:
  realm: Team
  htpasswd: |
{lines}
transformations: {{request: {{set: {{x-user: basicAuth.username}}}}}}
""")

    def header(name: str, password: str) -> dict[str, str]:
        return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}

    for name in hashes:
        for _ in range(2):
            answer = ask(running, headers=header(name, f"pw-{name}"))
            assert (answer.status, answer.got("x-user"), answer.got("authorization")) == (200, [name], [])
    missing = ask(running)
    assert missing.status == 401
    assert missing.headers["www-authenticate"] == 'Basic realm="Team"'
    assert missing.body == b"basic authentication failure: no basic authentication credentials found"
    for bad in (header("apr", "wrong"), header("nobody", "pw"), {"authorization": "Basic !!"}, header("apr", "x" * 5000)):
        refused = ask(running, headers=bad)
        assert (refused.status, refused.body) == (401, b"basic authentication failure: invalid credentials")


# -- credentials for backends ------------------------------------------------------------------------------------------

OWN = """
gateways:
  default: {port: {port}}
routes:
- policies:
    jwtAuth: {issuer: %s, mode: optional, jwks: '%s'}
  backends:
  - host: "127.0.0.1:%d"
    policies:
      backendAuth:
        %s
"""


@pytest.mark.parametrize(("auth", "name", "value"), [
    ("key: canary", "authorization", "Bearer canary"),
    ("key: Basic Y2FuYXJ5", "authorization", "Basic Y2FuYXJ5"),
    ("key: {value: canary, location: {header: {name: x-key}}}", "x-key", "canary"),
    ("key: {value: canary, location: {cookie: {name: sid}}}", "cookie", "a=1; sid=canary"),
    ("credentials: [{key: canary, location: {header: {name: x-two}}}]", "x-two", "canary")])
def test_keys_for_backends(gateway, echo, auth: str, name: str, value: str) -> None:
    running = gateway(OWN % (ISSUER, JWKS, echo, auth))
    answer = ask(running, headers={"cookie": "a=1; sid=theirs", "x-key": "theirs", "x-two": "theirs"})
    assert answer.got(name) == [value]
    assert "canary" not in running.log()


def test_a_key_in_the_query(gateway, echo) -> None:
    running = gateway(OWN % (ISSUER, JWKS, echo, "key: {value: can ary, location: {queryParameter: {name: key}}}"))
    assert ask(running, path="/x?key=theirs&a=1").seen["path"] == "/x?a=1&key=can%20ary"


def test_the_client_s_verified_token_goes_on_only_when_asked_to(gateway, echo) -> None:
    running = gateway(OWN % (ISSUER, JWKS, echo, "passthrough: {}"))
    good = token()
    assert ask(running, headers=bearer(good)).got("authorization") == [f"Bearer {good}"]
    assert ask(running).got("authorization") == []
    without = gateway(OWN % (ISSUER, JWKS, echo, "key: {value: k, location: {header: {name: x-k}}}"))
    assert ask(without, headers=bearer(good)).got("authorization") == []


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "ES256"])
def test_tokens_signed_for_a_backend(gateway, echo, tmp_path, algorithm: str) -> None:
    from cryptography.hazmat.primitives import serialization

    key = EC_KEY if algorithm == "ES256" else RSA_KEY
    pem = tmp_path / "key.pem"
    pem.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                      serialization.NoEncryption()))  # fmt: skip
    auth = f"jwtSign: {{signingKey: {{file: {pem}}}, alg: {algorithm}, kid: k1, claims: {{sub: gate, aud: [x]}}, ttl: 60s}}"
    running = gateway(OWN % (ISSUER, JWKS, echo, auth))
    (found,) = ask(running).got("authorization")
    made = found.removeprefix("Bearer ")
    assert jwt.get_unverified_header(made) == {"alg": algorithm, "kid": "k1", "typ": "JWT"}
    claims = jwt.decode(made, key.public_key(), [algorithm], audience="x")
    assert claims["sub"] == "gate"
    assert claims["exp"] - claims["iat"] == 70
    assert ask(running).got("authorization") == [found]
