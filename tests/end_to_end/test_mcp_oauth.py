"""MCP servers as OAuth resources: documents, challenges, registration, tokens, and the official client's whole way."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from tests.end_to_end.identity_rig import JWKS, RSA_KEY, token
from tests.end_to_end.mcp_oauth_rig import CONFIG, PROVIDER, ROOT, Memory, consent

pytestmark = pytest.mark.warm

ACCEPT = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip
SUFFIXES = ("", "/mcp")


class Idp:
    """An identity provider of any kind: documents at any path, registrations recorded."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.registered: list[tuple[str, dict[str, str], bytes]] = []
        self.broken = False
        idp = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                idp.asked.append(self.path)
                self.reply(500 if idp.broken else 200, json.dumps(idp.document()).encode())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                idp.registered.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                self.reply(201, b'{"client_id":"made-by-the-idp"}')

            def reply(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def document(self) -> dict[str, Any]:
        return {
            "issuer": self.origin, "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token", "registration_endpoint": f"{self.origin}/register",
            "code_challenge_methods_supported": ["S256"],
        }  # fmt: skip


@pytest.fixture
def idp() -> Iterator[Idp]:
    found = Idp()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def protected(gateway: Callable[..., Any]) -> Callable[..., Any]:
    def start(issuer: str = "https://idp.test", provider: str = "", more: str = "", jwks: str | None = None) -> Any:
        text = CONFIG.replace("ISSUER", issuer).replace("MORE", more)
        text = text.replace("PROVIDER", provider).replace("jwks: 'JWKS'", f"jwks: '{JWKS}'" if jwks is None else jwks)
        return gateway(text, 2)

    return start


def call(running: Any, **headers: str) -> httpx.Response:
    return httpx.post(f"{running.url}/mcp", json=INITIALIZE, headers={**ACCEPT, **headers}, timeout=60)


def test_without_a_good_token_the_way_is_told(protected: Callable[..., Any]) -> None:
    running = protected()
    body = {"error": "unauthorized", "error_description": "JWT token required"}
    where = 'Bearer resource_metadata="http://gw.test/.well-known/oauth-protected-resource/mcp"'
    # What the client sends, what it is told beside (RFC 6750 section 3), and what the operator reads in the log.
    for credential, told, logged in (
        (None, "", ""),
        ("Basic eDp5", "", ""),
        ("Bearer x.y.z", "the token is malformed", "the token is malformed"),
        (f"Bearer {token(exp=1)}", "the token has expired", "the token has expired: "),
        (f"Bearer {token(aud='web')}", "the token is for another audience", "'web', not 'api' or"),
        (f"Bearer {token(iss='https://b.test')}", "the token has another issuer", "'https://b.test', not 'https://idp.test'"),
        (f"Bearer {token(kid='r9')}", "the token was signed with an unknown key", "kid 'r9'"),
    ):
        answer = call(running, **({} if credential is None else {"authorization": credential}))
        assert (answer.status_code, answer.json()) == (401, body), credential
        assert answer.headers["content-type"] == "application/json"
        more = f', error="invalid_token", error_description="{told}"' if told else ""
        assert answer.headers["www-authenticate"] == where + more
        if logged:
            running.wait_log(logged)
    for audience in ("api", ["x", "api://second"]):
        assert call(running, authorization=f"Bearer {token(aud=audience)}").status_code == 200
    running.wait_log("reason=JwtAuth")
    running.wait_log("jwt.sub=ada")


def test_no_path_ends_the_challenge(protected: Callable[..., Any]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", protected().port, timeout=10)
    connection.request("POST", '/mcp/a"b\\c', "{}", ACCEPT)
    answer = connection.getresponse()
    where = "http://gw.test/.well-known/oauth-protected-resource/mcp/a%22b%5Cc"
    assert answer.headers["www-authenticate"] == f'Bearer resource_metadata="{where}"'
    connection.close()


def test_modes_and_rules_behind_them(protected: Callable[..., Any]) -> None:
    running = protected(provider="mode: optional", more="authorization: {rules: ['jwt.sub == \"ada\"']}")
    assert call(running).status_code == 403
    assert call(running, authorization="Bearer x").status_code == 401
    assert call(running, authorization=f"Bearer {token()}").status_code == 200
    assert call(running, authorization=f"Bearer {token(sub='eve')}").status_code == 403


def test_the_protected_resource_document(protected: Callable[..., Any]) -> None:
    for provider, servers in (("", ["https://idp.test"]), ("provider: {okta: {}}", None)):
        running = protected(provider=provider)
        for suffix in SUFFIXES:
            url = f"{running.url}/.well-known/oauth-protected-resource{suffix}"
            answer = httpx.get(url, timeout=60)
            assert answer.status_code == 200
            assert answer.headers["access-control-allow-origin"] == "*"
            assert list(answer.json().items()) == [
                ("resource", "http://gw.test/mcp"),
                ("authorization_servers", servers or [f"{running.url}{suffix}"]),
                ("mcp_protocol_version", "2025-06-18"),
                ("resource_type", "mcp-server"),
                ("bearer_methods_supported", ["header"]),
                ("scopes_supported", ["read", "write"]),
            ]
        shown = httpx.get(url, headers={"x-forwarded-proto": "https", "host": "public.test"}, timeout=60).json()
        assert shown["authorization_servers"] == (servers or ["https://public.test/mcp"])
    assert httpx.get(f"{running.url}/.well-known/oauth-protected-resourcex", timeout=60).status_code == 401
    assert httpx.get(f"{running.url}/.well-known/other", timeout=60).status_code == 401
    assert httpx.get(f"{running.url}/mcp/.well-known/oauth-protected-resource", timeout=60).status_code == 401


def test_server_metadata_and_registration_through_the_gateway(protected: Callable[..., Any], idp: Idp) -> None:
    issuer = f"{idp.origin}/oauth2/default"
    running = protected(issuer, "provider: {okta: {}}")
    for suffix in SUFFIXES:
        url = f"{running.url}/.well-known/oauth-authorization-server{suffix}"
        answer = httpx.get(url, timeout=60)
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.json() == {
            **idp.document(),
            "issuer": f"{running.url}{suffix}",
            "authorization_endpoint": f"{idp.origin}/authorize?audience=api",
            "registration_endpoint": f"{url}/client-registration",
        }
    assert idp.asked in (["/oauth2/default/.well-known/openid-configuration"] * n for n in (1, 2)), "kept for a while"
    wanted = {"client_name": "c", "redirect_uris": ["http://127.0.0.1/cb"], "token_endpoint_auth_method": "none"}
    answer = httpx.post(f"{url}/client-registration", json=wanted, headers={"authorization": "Bearer CANARY", "cookie": "CANARY=1"}, timeout=60)
    assert (answer.status_code, answer.json()) == (201, {"client_id": "made-by-the-idp"})
    assert answer.headers["access-control-allow-origin"] == "*"
    [(path, fields, body)] = idp.registered
    assert (path, json.loads(body), fields["content-type"]) == ("/oauth2/v1/clients", wanted, "application/json")
    assert "CANARY" not in str(fields)
    assert httpx.post(f"{url}/client-registration", content=b"x" * 70_000, timeout=60).status_code == 413
    assert len(idp.registered) == 1


def test_one_client_for_everybody(protected: Callable[..., Any], idp: Idp) -> None:
    running = protected(f"{idp.origin}/realms/r", "provider: {keycloak: {}}\n      clientId: ours")
    url = f"{running.url}/.well-known/oauth-authorization-server/mcp/client-registration"
    for body, uris in ((b'{"redirect_uris":["http://x/y"],"client_id":"mine"}', ["http://x/y"]), (b"", []), (b"[", []), (b"[1]", [])):
        answer = httpx.post(url, content=body, timeout=60)
        assert (answer.status_code, answer.json()) == (201, {
            "client_id": "ours", "client_id_issued_at": 0, "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code"], "response_types": ["code"], "redirect_uris": uris,
        })  # fmt: skip
        assert answer.headers["access-control-allow-origin"] == "*"
    asked = {"origin": "http://app.test", "access-control-request-method": "POST"}
    answer = httpx.options(url, headers=asked)
    assert (answer.status_code, answer.headers["access-control-allow-methods"]) == (200, "POST, OPTIONS")
    assert (answer.headers["access-control-allow-headers"], answer.text) == ("content-type", "")
    assert idp.registered == []


def test_registration_outside_the_well_known_paths_takes_a_token(protected: Callable[..., Any], idp: Idp) -> None:
    running = protected(f"{idp.origin}/oauth2/default", "provider: {okta: {}}")
    url, wanted = f"{running.url}/mcp/client-registration", {"redirect_uris": ["http://127.0.0.1/cb"]}
    assert httpx.post(url, json=wanted, timeout=60).status_code == 401
    assert idp.registered == []
    given = {"authorization": f"Bearer {token(iss=f'{idp.origin}/oauth2/default')}"}
    answer = httpx.post(url, json=wanted, headers=given, timeout=60)
    assert (answer.status_code, answer.json()) == (201, {"client_id": "made-by-the-idp"})
    [(path, fields, body)] = idp.registered
    assert (path, json.loads(body), "authorization" in fields) == ("/oauth2/v1/clients", wanted, False)
    assert httpx.post(url, content=b"x" * 70_000, headers=given, timeout=60).status_code == 413


def test_token_requests_of_entra_go_through_the_gateway(protected: Callable[..., Any], idp: Idp) -> None:
    more = "provider: {entra: {}}\n      clientId: ours\n      clientSecret: CANARY-secret"
    running = protected(f"{idp.origin}/tenant/v2.0", more)
    url = f"{running.url}/.well-known/oauth-authorization-server/mcp"
    found = httpx.get(url, timeout=60).json()
    assert (found["authorization_endpoint"], found["token_endpoint"]) == (f"{url}/authorize", f"{url}/token")
    answer = httpx.get(f"{url}/authorize?client_id=ours&resource=http%3A%2F%2Fx&scope=a+b&state=%26", timeout=60)
    assert answer.status_code == 302
    assert answer.headers["location"] == f"{idp.origin}/tenant/oauth2/v2.0/authorize?client_id=ours&scope=a+b&state=%26"
    assert (httpx.get(f"{url}/token", timeout=60).status_code, httpx.get(f"{url}/token", timeout=60).headers["allow"]) == (405, "POST")
    form = {"grant_type": "authorization_code", "client_id": "ours", "code": "c", "resource": "http://x"}
    answer = httpx.post(f"{url}/token", data=form, timeout=60)
    assert (answer.status_code, answer.json()) == (201, {"client_id": "made-by-the-idp"})
    assert "access-control-allow-origin" not in answer.headers
    httpx.post(f"{url}/token", data=form, headers={"authorization": "Basic b3duOm93bg=="}, timeout=60)
    first, second = idp.registered
    assert first[0] == "/tenant/oauth2/v2.0/token"
    assert parse_qs(first[2].decode()) == {
        "grant_type": ["authorization_code"], "client_id": ["ours"], "code": ["c"], "client_secret": ["CANARY-secret"],
    }  # fmt: skip
    assert b"client_secret" not in second[2]
    assert second[1]["authorization"] == "Basic b3duOm93bg=="
    dump = httpx.get(f"http://127.0.0.1:{running.admin}/config_dump", timeout=60).text
    assert "CANARY" not in running.log() + dump


def test_a_provider_that_is_away(protected: Callable[..., Any], idp: Idp) -> None:
    running = protected(f"{idp.origin}/application/o/x/", "provider: {authentik: {}}")
    url = f"{running.url}/.well-known/oauth-authorization-server/mcp"
    idp.broken = True
    answer = httpx.get(url, timeout=60)
    assert (answer.status_code, answer.content) == (500, b"")
    idp.broken = False
    # A worker that has asked in vain asks again after a pause. Until both have it:
    deadline = time.monotonic() + 40
    while not all(httpx.get(url, timeout=60).status_code == 200 for _ in range(16)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    idp.broken = True
    assert httpx.get(url, timeout=60).json()["registration_endpoint"] == f"{url}/client-registration"
    assert httpx.post(f"{url}/client-registration", json={}, timeout=60).status_code == 500, "it takes no registrations: set clientId"
    running.wait_log("clients cannot register")


def test_keys_are_found_by_the_kind_of_provider(protected: Callable[..., Any], idp: Idp) -> None:
    import jwt

    public = {**jwt.algorithms.RSAAlgorithm.to_jwk(RSA_KEY.public_key(), as_dict=True), "kid": "r1"}
    idp.document = lambda: {"keys": [public]}  # type: ignore[method-assign]
    issuer = f"{idp.origin}/realms/r"
    running = protected(issuer, "provider: {keycloak: {}}", jwks="")
    deadline = time.monotonic() + 40
    while call(running, authorization=f"Bearer {token(iss=issuer)}").status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "/realms/r/protocol/openid-connect/certs" in idp.asked


def test_the_token_reaches_no_target(protected: Callable[..., Any], gateway: Callable[..., Any], upstream: Any) -> None:
    seen: list[bytes] = []

    def script(connection: Any) -> None:
        while data := connection.recv(65536):
            seen.append(data)
            body = b'{"jsonrpc":"2.0","id":1,"result":{}}'
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 36\r\n\r\n" + body)

    target = f'mcp: {{host: "http://127.0.0.1:{upstream(script)}/mcp"}}'
    text = CONFIG.replace("ISSUER", "https://idp.test").replace("MORE", "").replace("PROVIDER", "").replace("JWKS", JWKS)
    text = re.sub(r"stdio: .*", target, text)
    running = gateway(text)
    assert call(running, authorization=f"Bearer {token()}").status_code == 200
    assert b"authorization" not in b"".join(seen).lower()


def test_what_is_not_built_is_refused(tmp_path: Path) -> None:
    from headgate.config.load import LoadErrors, TextSource, load

    text = CONFIG.replace("ISSUER", "https://idp.test").replace("JWKS", JWKS).replace("MORE", "").replace("{port}", "1")
    for change, message in (("provider: {entra: {}}", "contains no tenant"), ("clientSecret: x", "needs clientId"),
                            ("redirectUris: ['https://a']", "needs clientId"),
                            ("clientId: a\n      redirectUris: ['/a']", "must be absolute URIs"),
                            ("jwtValidationOptions: {requiredClaims: [nope]}", "is none of")):  # fmt: skip
        with pytest.raises(LoadErrors, match=message):
            load(TextSource(text.replace("PROVIDER", change)))
    warned = load(TextSource(text.replace(f"jwks: '{JWKS}'", "").replace("PROVIDER", "provider: {okta: {}}"))).warnings
    assert any("set jwks to https://idp.test/v1/keys" in one for one in warned)






@pytest.mark.node
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("node") is None or not PROVIDER.exists(), reason="run `make node-peers`")
def test_the_official_client_finds_its_way(gateway: Callable[..., Any]) -> None:
    import httpx2
    from mcp import ClientSession
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

    running = gateway("gateways:\n  default: {port: {port}}\n", 2)
    resource = f"{running.url}/mcp"
    command = ["node", str(ROOT / "tests" / "peers" / "oauth_server.mjs"), str(PROVIDER), resource]
    peer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert peer.stdout is not None
        issuer = peer.stdout.readline().strip()
        text = CONFIG.replace("ISSUER", issuer).replace("jwks: 'JWKS'", f"jwks: {{url: '{issuer}/jwks'}}")
        text = text.replace('[api, "api://second"]', f'["{resource}"]').replace("http://gw.test/mcp", resource)
        text = text.replace("scopesSupported: [read, write]", "scopesSupported: [mcp]").replace("PROVIDER", "")
        running.write(text.replace("MORE", "authorization: {rules: ['jwt.sub == \"ada\"']}"))
        running.wait_log("configuration reloaded")
        found: dict[str, str] = {}

        async def redirect(location: str) -> None:
            found.update(await asyncio.to_thread(consent, location))

        async def back() -> AuthorizationCodeResult:
            return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

        async def run() -> list[str]:
            metadata = OAuthClientMetadata(
                redirect_uris=["http://localhost:9/cb"], client_name="test", token_endpoint_auth_method="none", scope="mcp"
            )
            auth = OAuthClientProvider(resource, metadata, Memory(), redirect, back)
            async with (
                httpx2.AsyncClient(auth=auth, timeout=60) as http,
                streamable_http_client(resource, http_client=http) as (read, write, *_),
                ClientSession(read, write) as session,
            ):
                await session.initialize()
                return [tool.name for tool in (await session.list_tools()).tools]

        assert asyncio.run(run()) == ["echo", "add", "slow"]
        assert "iss" in found, "this server names itself in its answers (RFC 9207)"
        running.wait_log("jwt.sub=ada")
    finally:
        peer.terminate()
        peer.wait()
