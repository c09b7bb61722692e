"""Markers in every secret field: they reach whom they are for, and nobody else sees them."""

from __future__ import annotations

import json
import socket
import sys

import pytest
from tests import forked_rig
from tests.end_to_end.tracing import Watch

# What is tested is of the process: its memory, its frames, its end.
pytestmark = pytest.mark.executed

CONFIG = """
gateways:
  default: {port: {port}}
llm:
  models:
  - name: m
    provider: openai
    params: {baseUrl: "http://127.0.0.1:BACKEND/v1", apiKey: CANARY-llm-key}
mcp:
  targets:
  - name: t
    stdio: {cmd: "PYTHON", args: ["-m", "headgate.sample.mcp_server"], env: {TOKEN: CANARY-mcp-environment}}
routes:
- name: keyed
  matches: [{path: {pathPrefix: /keyed}}]
  backends:
  - host: "127.0.0.1:BACKEND"
    policies: {backendAuth: {key: CANARY-backend-key}}
- name: dead
  matches: [{path: {pathPrefix: /dead}}]
  backends:
  - host: "127.0.0.1:1"
    policies: {backendAuth: {key: {file: FOLDER/secret}}}
- name: signed
  matches: [{path: {pathPrefix: /signed}}]
  backends:
  - host: "127.0.0.1:BACKEND"
    policies:
      backendAuth:
        aws: {accessKeyId: AKIA1, secretAccessKey: CANARY-aws-secret, sessionToken: CANARY-aws-token, region: r-1, serviceName: s}
- name: entra
  matches: [{path: {pathPrefix: /entra}}]
  backends:
  - host: "127.0.0.1:BACKEND"
    policies:
      backendAuth:
        azure: {explicitConfig: {clientSecret: {tenant_id: t, client_id: c, client_secret: CANARY-azure-secret}}}
- name: google
  matches: [{path: {pathPrefix: /google}}]
  backends:
  - host: "127.0.0.1:BACKEND"
    policies: {backendAuth: {gcp: {credential: '{"type": "service_account", "private_key": "CANARY-google-key"}'}}}
- name: exchanged
  matches: [{path: {pathPrefix: /exchanged}}]
  backends:
  - host: "127.0.0.1:BACKEND"
    policies:
      backendAuth:
        oauthTokenExchange:
          host: "127.0.0.1:BACKEND"
          clientAuth: {method: clientSecretPost, clientId: c, clientSecret: CANARY-exchange-secret}
- name: login
  matches: [{path: {pathPrefix: /login}}]
  policies:
    oidc:
      issuer: http://127.0.0.1:BACKEND
      clientId: app
      clientSecret: CANARY-client-secret
      redirectURI: http://127.0.0.1/login/done
      authorizationEndpoint: http://127.0.0.1:BACKEND/auth
      tokenEndpoint: http://127.0.0.1:BACKEND/token
      jwks: {url: "http://127.0.0.1:BACKEND/jwks"}
  backends: []
- name: identity
  matches: [{path: {pathPrefix: /identity}}]
  policies:
    apiKey:
      keys: [{key: CANARY-api-key, metadata: {team: red}}]
      location: {queryParameter: {name: pass}}
      mode: optional
    basicAuth:
      htpasswd: "ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="
      mode: optional
    authorization: {rules: ['apiKey.team == "red" && apiKey.key != "x"']}
    transformations: {request: {set: {x-shown: string(apiKey.key)}}}
  backends:
  - host: "127.0.0.1:BACKEND"
    policies:
      backendAuth:
        key: {value: CANARY-query-key, location: {queryParameter: {name: upstreamkey}}}
        credentials: [{key: CANARY-extra-key, location: {cookie: {name: sid}}}]
""".replace("PYTHON", sys.executable)


def test_no_marker_shows_in_logs_dump_metrics_or_errors(gateway, upstream, tmp_path) -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        while data := connection.recv(65536):
            seen.append(data)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")

    (tmp_path / "secret").write_text("CANARY-file-key\n")
    place = upstream(script)
    text = CONFIG.replace("BACKEND", str(place)).replace("FOLDER", str(tmp_path))
    running = gateway(text, environment={"RUST_LOG": "trace", "OIDC_COOKIE_SECRET": "5a" * 32, "AZURE_AUTHORITY_HOST": f"http://127.0.0.1:{place}"})
    paths = ("/keyed", "/dead", "/identity?pass=CANARY-api-key&a=1", "/identity?pass=CANARY-wrong", "/identity")
    shown = [running.fetch(f"{running.url}{path}")[1] for path in paths]
    shown += [running.fetch(f"{running.url}{path}")[1] for path in ("/signed", "/entra", "/google")]
    shown.append(running.fetch(f"{running.url}/exchanged", headers={"authorization": "Bearer CANARY-of-a-client"})[1])
    shown.append(running.fetch(f"{running.url}/v1/chat/completions", "POST", data=b'{"model":"m"}')[1])
    shown.append(running.fetch(f"{running.url}/v1/chat/completions", "POST", data=b'{"model":"other"}')[1])
    sent = b"".join(seen)
    assert b"authorization: Bearer CANARY-backend-key" in sent
    assert b"authorization: Bearer CANARY-llm-key" in sent
    assert b"GET /identity?a=1&upstreamkey=CANARY-query-key " in sent
    assert b"cookie: sid=CANARY-extra-key" in sent
    assert b"x-amz-security-token: CANARY-aws-token" in sent
    assert b"client_secret=CANARY-azure-secret" in sent
    assert b"subject_token=CANARY-of-a-client" in sent
    assert b"client_secret=CANARY-exchange-secret" in sent
    assert b"CANARY-aws-secret" not in sent
    assert b"CANARY-google-key" not in sent
    assert b"x-shown: <redacted>" in sent
    assert b"CANARY-api-key" not in sent
    # A reload that fails, one that works, and everything an operator can look at.
    running.write(text.replace("- name: keyed", "- nam: keyed"))
    running.wait_log("Failed to reload config")
    running.write(text.replace("/keyed", "/other"))
    running.wait_log("generation=2")
    base = f"http://127.0.0.1:{running.admin}"
    dump = running.fetch(f"{base}/config_dump")[1]
    assert "<redacted>" in dump
    shown += [dump, running.fetch(f"{base}/memory")[1], running.fetch(f"{base}/logging")[1]]
    shown += [running.fetch(f"http://127.0.0.1:{running.stats}/metrics")[1], running.log()]
    for text in shown:
        assert "CANARY" not in text
        assert "5a" * 32 not in text


SET = """
gateways:
  default: {port: {port}}
llm:
  models:
  - name: m
    provider: openai
    params: {baseUrl: "http://127.0.0.1:BACKEND/v1"}
    overrides: {user: shown-user, password: CANARY-override}
    requestHeaders: {set: {x-goog-api-key: CANARY-model-header}}
    guardrails:
      request:
      - webhook: {target: {host: "127.0.0.1:BACKEND"}, headers: {authorization: '"Bearer CANARY-webhook"'}}
mcp:
  targets:
  - name: h
    mcp: {host: "http://127.0.0.1:BACKEND/mcp"}
    policies: {requestHeaderModifier: {set: {authorization: Bearer CANARY-target}}}
routes:
- name: set
  matches: [{path: {pathPrefix: /set}}]
  policies:
    requestHeaderModifier:
      set: {authorization: Bearer CANARY-set, x-team: shown-team}
      add: {cookie: sid=CANARY-cookie, x-auth-token: CANARY-token}
    responseHeaderModifier: {set: {set-cookie: s=CANARY-set-cookie}}
    transformations:
      request: {set: {x-api-key: '"CANARY-literal"', proxy-authorization: 'request.headers["x-shown"]'}}
  backends: [{host: "127.0.0.1:BACKEND"}]
- name: direct
  matches: [{path: {pathPrefix: /direct}}]
  policies: {directResponse: {status: 200, headers: {set-cookie: '"a=CANARY-direct"'}}}
"""


def test_values_that_policies_set_are_hidden_by_their_names(gateway, upstream) -> None:
    seen: list[bytes] = []

    def script(connection: socket.socket) -> None:
        while data := connection.recv(65536):
            seen.append(data)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")

    running = gateway(SET.replace("BACKEND", str(upstream(script))), environment={"RUST_LOG": "trace"})
    chat = b'{"model":"m","messages":[{"role":"user","content":"hello"}]}'
    shown = []
    for path, body in (("/set", None), ("/direct", None), ("/v1/chat/completions", chat)):
        watch = Watch(running)
        running.fetch(f"{running.url}{path}", "POST" if body else "GET", data=body)
        # Bodies are shown as they are.
        shown.append(json.dumps([one for one in watch.wait() if one["message"]["type"] != "bodySnapshot"]))
    for secret in (b"CANARY-set", b"CANARY-cookie", b"CANARY-token", b"CANARY-literal", b"CANARY-webhook"):
        assert secret in b"".join(seen)
    base = f"http://127.0.0.1:{running.admin}"
    dump = running.fetch(f"{base}/config_dump")[1]
    for text in ("shown-user", "shown-team", "<redacted>"):
        assert text in dump
    changed = running.path.with_name("changed.yaml")
    changed.write_text(running.path.read_text().replace("CANARY-", "CANARY-other-"))
    told = forked_rig.run("headgate.cli.main", "-f", str(changed), "--diff", base)
    assert told.returncode == 3, told.stderr
    shown += [dump, told.stdout, told.stderr, running.log()]
    shown += [running.fetch(f"{base}{path}")[1] for path in ("/api/config", "/api/config/text", "/api/state")]
    for text in shown:
        assert "CANARY" not in text


def test_a_configuration_error_does_not_show_the_secret_beside_it(tmp_path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        CONFIG.replace("BACKEND", "1").replace("FOLDER", "/nowhere").replace("{port}", "3000") + "wrong: field\n"
    )
    done = forked_rig.run("headgate.cli.main", "-f", str(path), "--validate-only")
    assert done.returncode == 1
    assert "CANARY" not in done.stdout + done.stderr
