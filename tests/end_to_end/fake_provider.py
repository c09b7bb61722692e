"""An OpenID provider that does what a test tells it to, wrong things included."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SECRET = "a secret/with+signs"


class FakeProvider:
    """`claims`: put over those of the next ID tokens (None removes one, a function is called for each). `answer`: (status,
    body) of the token endpoint instead of its own. `metadata`: put over the discovery document. `grants`: forms that came
    to the token endpoint.
    """

    def __init__(self, client_id: str = "app") -> None:
        self.client_id = client_id
        self.claims: dict[str, Any] = {}
        self.answer: tuple[int, bytes] | None = None
        self.metadata: dict[str, Any] = {}
        self.refresh = False
        self.hang = 0.0
        self.key = KEY
        self.algorithm = "RS256"
        self.grants: list[dict[str, str]] = []
        self.clients: list[str] = []
        self.nonces: dict[str, tuple[str, str]] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path == "/.well-known/openid-configuration":
                    self.reply(200, json.dumps(provider.document()).encode())
                elif self.path == "/jwks":
                    public = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
                    self.reply(200, json.dumps({"keys": [{**public, "kid": "k", "use": "sig"}]}).encode())
                else:
                    self.reply(404, b"")

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                form = {key: values[0] for key, values in parse_qs(raw.decode()).items()}
                provider.grants.append(form)
                provider.clients.append(self.headers.get("authorization") or "")
                time.sleep(provider.hang)
                self.reply(*(provider.answer or provider.tokens(form)))

            def reply(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def document(self) -> dict[str, Any]:
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/auth",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "end_session_endpoint": f"{self.issuer}/bye",
            **self.metadata,
        }
        return {key: value for key, value in found.items() if value is not None}

    def authorize(self, location: str) -> tuple[str, dict[str, str]]:
        """What a user's consent gives for an authorization URL: a code, and the query."""
        query = {key: values[0] for key, values in parse_qs(urlsplit(location).query).items()}
        code = f"code{len(self.nonces)}"
        self.nonces[code] = query["nonce"], query["code_challenge"]
        return code, query

    def tokens(self, form: dict[str, str]) -> tuple[int, bytes]:
        nonce = None
        if form["grant_type"] == "authorization_code":
            nonce, challenge = self.nonces.pop(form["code"], (None, ""))
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            if base64.urlsafe_b64encode(digest).decode().rstrip("=") != challenge:
                return 400, b'{"error":"invalid_grant"}'
        now = time.time()
        claims: dict[str, Any] = {"iss": self.issuer, "aud": self.client_id, "sub": "ada", "exp": now + 600, "nonce": nonce}
        claims |= self.claims
        claims = {key: value() if callable(value) else value for key, value in claims.items() if value is not None}
        token = jwt.encode(claims, self.key, self.algorithm, headers={"kid": "k"})
        found = {"id_token": token, "access_token": "x", "token_type": "Bearer"}
        if self.refresh:
            found["refresh_token"] = f"refresh{len(self.grants)}"
        return 200, json.dumps(found).encode()

    def credentials(self) -> str:
        """Client id and secret of the last call, as Basic gave them."""
        name, _, secret = base64.b64decode(self.clients[-1].removeprefix("Basic ")).decode().partition(":")
        return f"{unquote_plus(name)} {unquote_plus(secret)}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
