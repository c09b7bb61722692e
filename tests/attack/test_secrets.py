"""Credentials in the places where they are configured and sent, looked for in every place that shows something (CWE-200, CWE-532, CWE-598)."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import forked_rig
from tests.attack.recording_rig import PATIENCE
from tests.end_to_end.running import Gateway
from tests.end_to_end.tracing import Watch

# Of each canary: where it stands in the configuration or in a request, and whether a backend must get it.
CANARIES = {
    "CANARY-backend-key": True, "CANARY-special-key": True, "CANARY-query-key-0123456789": True, "CANARY-set-token": True,
    "CANARY-set-password": True, "CANARY-literal": True, "CANARY-jwks": True, "CANARY-jwks-semicolon": True,
    "CANARY-openapi": True, "CANARY-token-endpoint": False, "CANARY-llm-key": True, "CANARY-process": False,
    "CANARY-argument": False, "CANARY-of-the-environment": False, "CANARY-client-bearer": True, "CANARY-client-cookie": True,
    "CANARY-client-key-0123456789": True, "CANARY-client-semicolon-0123456789": True, "CANARY-client-encoded": True, "CANARY-client-basic": True,
    "CANARY-sensitive": True, "CANARY-session-of-a-server-0123456789": True, "CANARY-response-cookie": False,
}  # fmt: skip
CONFIG = """
frontendPolicies:
  accessLog: {add: {headers: "flatten(request.headers.redacted())", reply: "response.headers.redacted()"}}
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: m, provider: openai, params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: CANARY-llm-key}}
mcp:
  failureMode: failOpen
  targets:
  - {name: t, mcp: {host: "http://127.0.0.1:BACKEND/mcp"}}
  - {name: o, openapi: {host: "127.0.0.1:BACKEND", schema: {url: "http://127.0.0.1:BACKEND/doc?v=1&key=CANARY-openapi"}}}
  - {name: p, stdio: {cmd: "false", args: ["--api-key", CANARY-argument], env: {TOKEN: CANARY-process, MORE: "${OF_THE_ENVIRONMENT}"}}}
routes:
- name: set
  matches: [{path: {pathPrefix: /set}}]
  policies:
    requestHeaderModifier: {set: {x-upstream-token: CANARY-set-token}, add: {x-db-password: CANARY-set-password}}
    transformations: {request: {set: {x-client-secret: '"CANARY-literal"', x-copy-for-logs: 'request.headers["x-private"]'}}}
  backends:
  - host: "127.0.0.1:BACKEND"
    policies:
      backendAuth:
        key: {value: CANARY-special-key, location: {header: {name: x-special}}}
        credentials: [{key: CANARY-query-key-0123456789, location: {queryParameter: {name: upstream}}}]
- name: keyed
  matches: [{path: {pathPrefix: /keyed}}]
  backends: [{host: "127.0.0.1:BACKEND", policies: {backendAuth: {key: CANARY-backend-key}}}]
- name: moved
  matches: [{path: {pathPrefix: /moved}}]
  policies: {requestRedirect: {authority: {host: other.test}}}
- name: tokens
  matches: [{path: {pathPrefix: /tokens}}]
  policies: {jwtAuth: {issuer: i, audiences: [a], jwks: {url: "http://127.0.0.1:BACKEND/jwks?v=1&token=CANARY-jwks"}}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: more-tokens
  matches: [{path: {pathPrefix: /more}}]
  policies: {jwtAuth: {issuer: i, audiences: [a], jwks: {url: "http://127.0.0.1:BACKEND/jwks?a=1;key=CANARY-jwks-semicolon"}}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: login
  matches: [{path: {pathPrefix: /login}}]
  policies:
    oidc:
      issuer: http://127.0.0.1:BACKEND
      clientId: app
      clientSecret: CANARY-argument
      redirectURI: http://127.0.0.1/login/done
      authorizationEndpoint: http://127.0.0.1:BACKEND/auth
      tokenEndpoint: http://127.0.0.1:BACKEND/token?code=CANARY-token-endpoint
      jwks: {url: "http://127.0.0.1:BACKEND/jwks"}
  backends: []
- name: dead
  matches: [{path: {pathPrefix: /dead}}]
  backends: [{host: "127.0.0.1:1", policies: {backendAuth: {key: CANARY-backend-key}}}]
- name: plain
  matches: [{path: {pathPrefix: /plain}}]
  backends: [{host: "127.0.0.1:BACKEND"}]
"""
ENVIRONMENT = {"OIDC_COOKIE_SECRET": "5a" * 32, "OF_THE_ENVIRONMENT": "CANARY-of-the-environment"}
SESSION = "the id of an MCP session"
SETTINGS = """
sensitiveHeaders: [x-private, x-copy-for-logs]
logging: {format: FORMAT, level: [info, headgate=debug]}
database: {url: "sqlite://FOLDER/log.db"}
"""
FIELDS = {
    "authorization": "Bearer CANARY-client-bearer", "cookie": "s=CANARY-client-cookie", "x-private": "CANARY-sensitive",
    "proxy-authorization": "Basic CANARY-client-basic",
}  # fmt: skip
REQUESTS = [
    ("GET", "/set?a=1;key=CANARY-client-semicolon-0123456789"), ("GET", "/keyed"), ("GET", "/moved?token=CANARY-client-encoded"), ("GET", "/tokens"), ("GET", "/more"),
    ("GET", "/login"), ("GET", "/dead?key=CANARY-client-key-0123456789"), ("GET", "/plain?t%6Fken=CANARY-client-encoded&key=CANARY-client-key-0123456789"),
    ("GET", "/nowhere?token=CANARY-client-encoded"), ("POST", "/v1/chat/completions"), ("POST", "/mcp"), ("POST", "/mcp"),
]  # fmt: skip


class Backend:
    """Answers everything; keeps the bytes that it got."""

    def __init__(self) -> None:
        self.seen = b""
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(65536):
                self.seen += data
                head = b"content-type: application/json\r\nset-cookie: a=CANARY-response-cookie\r\nmcp-session-id: CANARY-session-of-a-server-0123456789\r\n"
                body = b"{}"
                if b'"initialize"' in data:
                    body = json.dumps({"jsonrpc": "2.0", "id": json.loads(data[data.index(b"{") :])["id"], "result": {
                        "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}).encode()
                connection.sendall(b"HTTP/1.1 200 OK\r\n%scontent-length: %d\r\n\r\n%s" % (head, len(body), body))

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def ask(port: int, method: str, path: str, fields: dict[str, str], body: bytes | None = None) -> tuple[int, dict[str, str], str]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    client.request(method, path, body, fields)
    answer = client.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode("utf-8", "replace")
    client.close()
    return found


def traffic(running: Gateway) -> tuple[list[str], list[str], str]:
    """The traces of the requests, without their bodies, the texts of refusals, and the id of an MCP session."""
    traces, told, session = [], [], ""
    for method, path in REQUESTS:
        body = None
        if path == "/mcp":
            what = {"method": "tools/list"} if session else {"method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, **what}).encode()
        elif method == "POST":
            body = b'{"model":"m","messages":[{"role":"user","content":"hello"}]}'
        watch = Watch(running)
        kinds = {"content-type": "application/json", "accept": "application/json, text/event-stream"} if body else {}
        own = {"mcp-session-id": session} if session and body else {}
        status, fields, text = ask(running.port, method, path, {**FIELDS, **kinds, **own}, body)
        session = fields.get("mcp-session-id", session) if path == "/mcp" else session
        traces.append(json.dumps([one for one in watch.wait() if one["message"]["type"] != "bodySnapshot"]))
        if status >= 400:
            told.append(text)
    assert len(session) > 40, told
    return traces, told, session


def places(running: Gateway, folder: Path) -> Iterator[tuple[str, str]]:
    """All that an operator or a client may look at, by name."""
    traces, told, session = traffic(running)
    yield SESSION, session
    yield from ((f"trace of {path}", text) for (_, path), text in zip(REQUESTS, traces, strict=True))
    yield "messages to clients", "\n".join(told)
    base = f"http://127.0.0.1:{running.admin}"
    for path in ("/config_dump", "/api/config", "/api/config/text", "/api/config/effective", "/api/state", "/api/runtime", "/ui", "/debug/tasks", "/memory", "/logging"):
        yield path, running.fetch(base + path)[1]
    yield "/api/config/check", ask(running.admin, "POST", "/api/config/check", {"content-type": "application/json"},
                                   json.dumps({"text": running.path.read_text() + "\nwrong: 1\n"}).encode())[2]
    yield "/metrics", running.fetch(f"http://127.0.0.1:{running.stats}/metrics")[1]
    changed = folder / "changed.yaml"
    changed.write_text(running.path.read_text().replace("CANARY-", "CANARY-other-"))
    words = [sys.executable, "-m", "headgate.cli.main", "-f", str(changed)]
    for name, more in (("--diff", ["--diff", base]), ("--validate-only", ["--validate-only"])):
        done = subprocess.run([*words, *more], capture_output=True, text=True, check=False, env={**os.environ, **ENVIRONMENT})
        yield name, done.stdout + done.stderr
    running.write("wrong: [CANARY-backend-key]\n" + CONFIG)
    running.wait_log("Failed to reload config")
    status, _, found = ask(running.admin, "POST", "/api/logs/search", {"content-type": "application/json"}, b"{}")
    assert status == 200
    yield "/api/logs/search", found
    running.process.terminate()
    running.process.wait(PATIENCE)
    yield "log", running.log()
    yield "request log in SQLite", "".join(path.read_bytes().decode("latin-1") for path in folder.glob("log.db*"))


@pytest.fixture(scope="module", params=["text", "json"])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, str], bytes]]:
    """What each place shows, and what the backend got. The form of the log is that of the parameter."""
    folder, backend = tmp_path_factory.mktemp("secrets"), Backend()
    settings = SETTINGS.replace("FORMAT", request.param).replace("FOLDER", str(folder))
    running = Gateway(folder, CONFIG.replace("BACKEND", str(backend.port)), 1, ENVIRONMENT, settings)
    running.wait_ready()
    try:
        yield dict(places(running, folder)), backend.seen
    finally:
        running.process.kill()
        running.process.wait(PATIENCE)
        backend.close()


def test_no_place_shows_a_credential(shown: tuple[dict[str, str], bytes]) -> None:
    found, _ = shown
    session = found[SESSION]
    assert len(found) > 25
    wrong = {}
    for place, text in found.items():
        if place == SESSION:
            continue
        assert text, f"nothing to look at: {place}"
        for canary in (*CANARIES, session, *ENVIRONMENT.values()):
            if canary in text:
                at = text.index(canary)
                wrong[place, canary] = text[max(0, at - 150) : at + 60]
    assert not wrong, "\n".join(f"{place}: {canary}: ...{text}" for (place, canary), text in wrong.items())


def test_the_places_show_all_else(shown: tuple[dict[str, str], bytes]) -> None:
    """That nothing was found is worth something only where there was something to find."""
    found, seen = shown
    missing = [canary for canary, reaches in CANARIES.items() if reaches and canary.encode() not in seen]
    assert not missing, "these reached no backend"
    for place in ("/config_dump", "/api/config", "/api/config/text", "log", "trace of /keyed", "request log in SQLite"):
        assert "<redacted>" in found[place], place
    for text in ("/jwks?v=1&token=<redacted>", "/doc?v=1&key=<redacted>"):
        for place in ("/config_dump", "/api/config"):
            assert text in found[place], (place, text)
    assert "/jwks?a=1;key=<redacted>" in found["/api/config/text"]
    assert "cannot fetch keys" in found["log"]
    assert "/set?a=1;key=<redacted>" in found["log"]
    # An id of a session can be told from another one.
    assert f'"sessionId": "{found[SESSION][:16]}..."' in found["trace of /mcp"]
    assert "a secret, or another value" in found["--diff"]


FAULTS = {
    "a rewrite": ("policies: {urlRewrite: {path: {full: '/new?access_token=CANARY'}}}", "urlRewrite.path"),
    "a redirect": ("policies: {requestRedirect: {path: {full: '/new?a=1;key=CANARY#x'}}}", "requestRedirect.path"),
    "keys": ("policies: {jwtAuth: {issuer: i, jwks: {url: 'gopher://u:CANARY@h/?token=CANARY'}}}", "jwks"),
    "an origin": ("policies: {csrf: {additionalOrigins: ['https://u:CANARY@h.test']}}", "additionalOrigins"),
    "a place": ("backends: [{host: 'http://u:CANARY@h.test/?token=CANARY'}]", "host"),
    "a header": ("policies: {requestHeaderModifier: {set: {authorization: [CANARY]}}}", "authorization"),
    "a key": ("backends: [{host: 'h.test:80', policies: {backendAuth: {key: [CANARY]}}}]", "key"),
    "an unknown field": ("policies: {basicAuth: {htpasswd: 'u:CANARY', passwort: CANARY}}", "passwort"),
    "an expression": ("policies: {authorization: {rules: ['request.headers[\"authorization\"] == \"Bearer CANARY']}}", "rules"),
}


def test_errors_of_a_configuration_quote_no_credential(tmp_path: Path) -> None:
    """Each is told with its place, and none with what stands there."""
    path = tmp_path / "config.yaml"
    lines = ["gateways: {default: {port: 1}}", "routes:"]
    for name, (text, _) in FAULTS.items():
        lines.append(f"- {{name: {name}, {text}}}")
    path.write_text("\n".join(lines))
    done = forked_rig.run("headgate.cli.main", "-f", str(path), "--validate-only")
    told = done.stdout + done.stderr
    assert done.returncode == 1
    for at, (name, (_, field)) in enumerate(FAULTS.items()):
        assert [line for line in told.splitlines() if f"routes[{at}]" in line and field in line], (name, told)
    assert "CANARY" not in told, [line for line in told.splitlines() if "CANARY" in line]
