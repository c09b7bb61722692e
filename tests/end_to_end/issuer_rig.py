"""Issuers that behave as those of vendors do: their published metadata, and how they refuse.

Sources: the documents in tests/headgate/dialect/providers; the vendors' pages on registration (Auth0: off until switched on,
Keycloak: policy Trusted Hosts, Entra and authentik: none) and on tokens (Entra: versions 1 and 2, `/.default`; Auth0: no JWT
without an audience; Keycloak: audience `account`; Okta: scopes of the custom server alone; Descope: per project).
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.end_to_end.identity_rig import JWKS, token

PROVIDERS = Path(__file__).resolve().parents[1] / "headgate" / "dialect" / "providers"
OPENID = "/.well-known/openid-configuration"
# Where a vendor serves its document, behind the path of the issuer.
OAUTH_PLACE = ("auth0",)


@dataclass
class Refusal:
    """A status with a document."""

    status: int
    document: dict[str, Any]


@dataclass
class Behaviour:
    """What one issuer does. `metadata` replaces members of its document (None: leaves them out); `claims` those of its tokens."""

    kind: str
    metadata: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    keys: str = JWKS
    token: Refusal | str | None = None
    registration: Refusal | None = None


class Issuer:
    """A running issuer. `issuer`: its URL; `deleted`: registrations that were taken back."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.forms: list[dict[str, str]] = []
        self.deleted: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                if path in outer.places():
                    self.reply(200, outer.document)
                elif path == urlsplit(str(outer.document.get("jwks_uri"))).path:
                    self.reply(200, json.loads(outer.behaviour.keys))
                else:
                    self.reply(404, {"error": "not found"})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                path = urlsplit(self.path).path
                if path == urlsplit(str(outer.document.get("token_endpoint"))).path:
                    outer.forms.append({name: values[0] for name, values in parse_qs(body).items()})
                    self.reply(*outer.issue(outer.forms[-1]))
                elif path == urlsplit(str(outer.document.get("registration_endpoint"))).path:
                    self.reply(*outer.register(json.loads(body)))
                else:
                    self.reply(404, {"error": "not found"})

            def do_DELETE(self) -> None:
                outer.deleted.append(self.path)
                self.reply(204, None)

            def reply(self, status: int, document: Any) -> None:
                body = b"" if document is None else json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        text = (PROVIDERS / f"{behaviour.kind}.json").read_text()
        published = json.loads(text)
        host = urlsplit(published["issuer"]).netloc
        self.issuer = str(published["issuer"]).replace(f"https://{host}", self.origin)
        self.document: dict[str, Any] = json.loads(text.replace(f"https://{host}", self.origin)) | {
            name: value.replace("ORIGIN", self.origin) if isinstance(value, str) else value
            for name, value in behaviour.metadata.items()
        }
        self.document = {name: value for name, value in self.document.items() if value is not None}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def places(self) -> list[str]:
        path = urlsplit(self.issuer).path.rstrip("/")
        return [
            f"{path}{OPENID}",
            *([f"/.well-known/oauth-authorization-server{path}"] if self.behaviour.kind in OAUTH_PLACE else []),
        ]

    def issue(self, form: dict[str, str]) -> tuple[int, Any]:
        told = self.behaviour.token
        if isinstance(told, Refusal):
            return told.status, told.document
        claims = {"iss": self.issuer, "aud": form.get("audience", "api"), "exp": time.time() + 3600}
        claims |= {
            name: value.replace("ORIGIN", self.origin) if isinstance(value, str) else value
            for name, value in self.behaviour.claims.items()
        }
        return 200, {"access_token": told or token(**claims), "token_type": "Bearer", "expires_in": 3600}

    def register(self, client: dict[str, Any]) -> tuple[int, Any]:
        told = self.behaviour.registration
        if told is not None:
            return told.status, told.document
        place = {"registration_client_uri": f"{self.origin}/clients/new", "registration_access_token": "once"}
        return 201, {**client, "client_id": "new", **place}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
