"""The error table over the wire, row by row: status, body, type and `reason`; and the same failures as gRPC sees them."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import trustme
from tests.end_to_end.identity_rig import JWKS

from headgate.pipeline.replies import POLICY_ROWS, REPLIES, ReplyRow
from headgate.policy.refusals import EXPIRED_KEY, KEY_ELSEWHERE, REVOKED_KEY, STORELESS, TOO_MANY_LOGINS, UNPRICED

GRPC = {400: 13, 401: 16, 403: 7, 404: 12, 407: 16, 429: 14, 502: 14, 503: 14, 504: 14}
CONFIG = """
gateways:
  default:
    port: {port}
    listeners:
    - {name: any}
  named:
    port: SPARE
    listeners:
    - {name: one, hostname: one.test, protocol: HTTPS, tls: {cert: FOLDER/one.pem, key: FOLDER/one.key}}
    - {name: two, hostname: two.test, protocol: HTTPS, tls: {cert: FOLDER/one.pem, key: FOLDER/one.key}}
  plain:
    port: PLAIN
    listeners: [{name: three, hostname: three.test}]
services: [{name: s, namespace: n, hostname: s.test, ports: {80: 80}}]
routes:
- {name: named, gateways: [named, plain], policies: {directResponse: {status: 200, body: x}}}
- {gateways: default, matches: [{path: {pathPrefix: /buffer}}], policies: {buffer: {request: {maxBytes: 4}}}, backends: [{host: "127.0.0.1:GOOD"}]}
- {gateways: default, matches: [{path: {pathPrefix: /big}}], policies: {buffer: {response: {maxBytes: 4}}}, backends: [{host: "127.0.0.1:GOOD"}]}
- {gateways: default, matches: [{path: {pathPrefix: /nobody}}], backends: []}
- {gateways: default, matches: [{path: {pathPrefix: /noise}}], backends: [{host: "127.0.0.1:NOISE"}]}
- {gateways: default, matches: [{path: {pathPrefix: /upgrade}}], backends: [{host: "127.0.0.1:UPGRADE"}]}
- {gateways: default, matches: [{path: {pathPrefix: /dead}}], backends: [{host: "127.0.0.1:1"}]}
- {gateways: default, matches: [{path: {pathPrefix: /empty}}], backends: [{service: {name: n/s.test, port: 80}}]}
- {gateways: default, matches: [{path: {pathPrefix: /late}}], policies: {timeout: {requestTimeout: 100ms}}, backends: [{host: "127.0.0.1:SILENT"}]}
- {gateways: default, matches: [{path: {pathPrefix: /slow}}], policies: {timeout: {backendRequestTimeout: 100ms}}, backends: [{host: "127.0.0.1:SILENT"}]}
- {gateways: default, matches: [{path: {pathPrefix: /forbidden}}], policies: {authorization: {rules: ["false"]}}, backends: []}
- {gateways: default, matches: [{path: {pathPrefix: /csrf}}], policies: {csrf: {}}, backends: []}
- gateways: default
  matches: [{path: {pathPrefix: /limit}}]
  policies: {localRateLimit: [{maxTokens: 0, tokensPerFill: 0, fillInterval: 1h}]}
- {gateways: default, matches: [{path: {exact: /prefix}}], policies: {urlRewrite: {path: {prefix: /x}}}, backends: []}
- {gateways: default, matches: [{path: {pathPrefix: /body}}], policies: {directResponse: {status: 200, bodyExpression: jwt.sub}}}
- gateways: default
  matches: [{path: {pathPrefix: /jwt}}]
  policies: {jwtAuth: {issuer: "https://idp.test", jwks: 'JWKS'}}
- {gateways: default, matches: [{path: {pathPrefix: /key}}], policies: {apiKey: {keys: [{key: good}]}}}
- {gateways: default, matches: [{path: {pathPrefix: /basic}}], policies: {basicAuth: {htpasswd: "ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="}}}
- gateways: default
  matches: [{path: {pathPrefix: /login}}]
  policies:
    oidc: {issuer: "http://127.0.0.1:1", clientId: a, clientSecret: b, redirectURI: "http://a.test/login/done"}
- gateways: default
  matches: [{path: {pathPrefix: /guarded}}]
  policies: {urlRewrite: {path: {prefix: /v1/chat/completions}}}
  backends: [{ai: {name: a, provider: {openAI: {model: m}}}, policies: {ai: {promptGuard: {request: [{regex: {rules: [{pattern: secret}], action: Reject}}]}}}}]
- gateways: default
  matches: [{path: {pathPrefix: /unsure}}]
  policies: {urlRewrite: {path: {prefix: /v1/chat/completions}}}
  backends: [{ai: {name: b, provider: {openAI: {model: m}}}, policies: {ai: {promptGuard: {request: [{webhook: {target: {host: "127.0.0.1:1"}}}]}}}}]
- gateways: default
  matches: [{path: {pathPrefix: /exchanged}}]
  backends: [{host: "127.0.0.1:1", policies: {backendAuth: {oauthTokenExchange: {host: "127.0.0.1:1"}}}}]
- gateways: default
  matches: [{path: {pathPrefix: /away}}]
  policies:
    oidc:
      issuer: "http://127.0.0.1:1"
      clientId: a
      clientSecret: b
      redirectURI: "http://a.test/away/done"
      authorizationEndpoint: "http://127.0.0.1:1/auth"
      tokenEndpoint: "http://127.0.0.1:1/token"
      jwks: {url: "http://127.0.0.1:1/jwks"}
"""


class Ask(NamedTuple):
    """How a row is provoked. `head`: more of the request's head; `raw`: the whole request instead."""

    path: str = "/"
    head: str = ""
    method: str = "GET"
    body: str = ""
    raw: str = ""
    door: str = "default"


NAMED: dict[str, Ask] = {
    "invalid_request": Ask(raw="GET / HTTP/1.0\r\n\r\n"),
    "method_not_allowed": Ask(raw="CONNECT a.test:80 HTTP/1.1\r\nhost: a.test:80\r\n\r\n"),
    "doubtful_path": Ask("/" + "%2f" * 3000),
    "misdirected": Ask(raw="GET / HTTP/1.1\r\nhost: two.test\r\n\r\n", door="tls"),
    "listener_not_found": Ask(door="plain"),
    "route_not_found": Ask("/nothing"),
    "body_too_large": Ask("/buffer", method="POST", body="12345"),
    "no_valid_backends": Ask("/nobody"),
    "upstream_protocol": Ask("/noise"),
    "response_too_large": Ask("/big"),
    "upgrade_refused": Ask(
        raw="GET /upgrade HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    ),
    "upstream_failed": Ask("/dead"),
    "no_healthy_backends": Ask("/empty"),
    "request_timeout": Ask("/late"),
    "upstream_timeout": Ask("/slow"),
}
# A fault of ours: nothing that comes over the wire leads there (tests/engine/link/test_forward.py raises in a step).
NOT_FROM_OUTSIDE = {"internal"}
# Want another mode of CONNECT (test_connect.py).
OF_TUNNELS = {"bind_not_found", "invalid_backend"}
# Want other backends: test_dynamic.py, test_a2a.py, test_internal_ports.py.
OF_BACKENDS = {"destination_refused", "unresolved", "processing_failed", "too_many_hops"}
# Want a service that is asked, or an agent: test_ext_authz.py, test_remote_limits.py, test_a2a.py.
OF_SERVICES = {"extAuthz", "extProc", "remoteRateLimit", "a2a"}
# Want many requests at a time (test_policies_safety.py), or a store that is away (test_shared_limits.py, test_remote_limits.py).
NOT_FROM_ONE_REQUEST = {TOO_MANY_LOGINS, "rate limit failed"}
# Want keys that are given out, and models: test_virtual_keys.py, test_key_budgets.py, test_shared_budgets.py.
OF_KEYS = {EXPIRED_KEY, REVOKED_KEY, KEY_ELSEWHERE, STORELESS, UNPRICED, ""}
PROMPT = '{"messages":[{"role":"user","content":"a secret"}]}'
POLICIES: dict[str, Ask] = {
    "authorization": Ask("/forbidden"),
    "csrf": Ask("/csrf", "origin: https://evil.test\r\nsec-fetch-site: cross-site\r\n", "POST"),
    "localRateLimit": Ask("/limit"),
    "promptGuard: inappropriate": Ask("/guarded", method="POST", body=PROMPT),
    "promptGuard: failed": Ask("/unsure", method="POST", body=PROMPT),
    "urlRewrite, requestRedirect": Ask("/prefix"),
    "directResponse": Ask("/body"),
    "jwtAuth": Ask("/jwt"),
    "apiKey: no": Ask("/key"),
    "apiKey: invalid": Ask("/key", "authorization: Bearer bad\r\n"),
    "basicAuth: no": Ask("/basic"),
    "basicAuth: invalid": Ask("/basic", "authorization: Basic YWRhOmJhZA==\r\n"),
    "backendAuth: failed": Ask("/exchanged", "authorization: Bearer x\r\n"),
    "backendAuth: invalid": Ask("/exchanged"),
    "oidc 400": Ask("/login/done?state=x"),
    "oidc 401": Ask("/login"),
    "oidc 500": Ask("/away"),
}


def policy_row(name: str) -> ReplyRow:
    """The row of POLICY_ROWS that a key of POLICIES stands for."""
    plain, _, mark = name.partition(":")
    found = [row for policy, row, _ in POLICY_ROWS if policy == plain.removesuffix(name[-4:] if "oidc" in name else "")]
    if "oidc" in name:
        return next(row for row in found if row.status == int(name[-3:]))
    return next(row for row in found if mark.strip() in row.body) if mark else found[0]


def test_every_row_is_provoked() -> None:
    assert set(NAMED) | NOT_FROM_OUTSIDE | OF_TUNNELS | OF_BACKENDS == set(REPLIES)
    assert sorted(map(str, map(policy_row, POLICIES))) == sorted(
        str(row)
        for policy, row, _ in POLICY_ROWS
        if row.body not in NOT_FROM_ONE_REQUEST and policy not in OF_SERVICES and not (policy == "apiKey" and row.body in OF_KEYS)
    )


def answering(text: bytes) -> Callable[[socket.socket], None]:
    def script(connection: socket.socket) -> None:
        while connection.recv(65536):
            connection.sendall(text)

    return script


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


class Answer(NamedTuple):
    status: int
    fields: dict[str, str]
    body: str


@pytest.fixture
def send(gateway: Any, upstream: Any, tmp_path: Any, authority: trustme.CA) -> Iterator[Callable[..., Answer]]:
    from tests.end_to_end.conftest import free_port

    cert = authority.issue_cert("one.test", "two.test")
    (tmp_path / "one.pem").write_bytes(b"".join(blob.bytes() for blob in cert.cert_chain_pems))
    cert.private_key_pem.write_to_path(tmp_path / "one.key")
    over = threading.Event()

    def never(connection: socket.socket) -> None:
        connection.recv(65536)
        over.wait()

    doors = {"tls": free_port(), "plain": free_port()}
    text = CONFIG.replace("SPARE", str(doors["tls"])).replace("PLAIN", str(doors["plain"])).replace("JWKS", JWKS)
    for name, script in (
        ("GOOD", answering(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nhello world!")),
        ("NOISE", answering(b"\x00\x01 no HTTP at all\r\n\r\n")),
        ("UPGRADE", answering(b"HTTP/1.1 101 Switching\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n")),
        ("SILENT", never),
    ):
        text = text.replace(name, str(upstream(script)))
    running = gateway(text.replace("FOLDER", str(tmp_path)), environment={"OIDC_COOKIE_SECRET": "5a" * 32})
    doors["default"] = running.port

    def ask(what: Ask, extra: str = "") -> Answer:
        line = f"{what.method} {what.path} HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n{what.head}"
        if what.body:
            line += f"content-length: {len(what.body)}\r\n"
        request = what.raw.replace("\r\n\r\n", f"\r\n{extra}\r\n", 1) if what.raw else f"{line}{extra}\r\n{what.body}"
        with socket.create_connection(("127.0.0.1", doors[what.door]), timeout=60) as sock:
            if what.door == "tls":
                context = ssl.create_default_context()
                authority.configure_trust(context)
                sock = context.wrap_socket(sock, server_hostname="one.test")
            sock.sendall(request.encode())
            stream = sock.makefile("rb")
            status = int(stream.readline().split()[1])
            fields = {}
            while (field := stream.readline().strip()) != b"":
                key, _, value = field.decode().partition(":")
                fields[key.lower()] = value.strip()
            return Answer(status, fields, stream.read(int(fields.get("content-length", 0))).decode())

    ask.running = running  # type: ignore[attr-defined]
    yield ask
    over.set()


def test_the_table_holds(send: Any) -> None:
    rows = [(name, REPLIES[name], what) for name, what in NAMED.items()]
    rows += [(name, policy_row(name), what) for name, what in POLICIES.items() if name != "oidc 500"]
    for name, row, what in rows:
        answer = send(what)
        assert answer.status == row.status, (name, answer)
        if name in ("upstream_failed", "backendAuth: failed"):
            assert answer.body.startswith(f"{row.body}: ")
            assert "Connection refused" in answer.body
        elif name.startswith("promptGuard"):
            # On paths of models it is an error object with the text and what to do.
            assert json.loads(answer.body)["error"]["message"].startswith(f"{row.body}: "), (name, answer)
        else:
            assert answer.body == row.body, (name, answer)
        kind = answer.fields.get("content-type")
        wanted = "application/json" if row.body.startswith("{") else "text/plain" if row.body else None
        if name.startswith("promptGuard"):
            wanted = "application/json"
        assert kind == wanted, (name, kind)
    seen: list[str] = []
    deadline = time.monotonic() + 40
    while len(seen) < len(rows) and time.monotonic() < deadline:
        log = [line for line in send.running.log().splitlines() if "\trequest" in line]
        seen = [line.split("reason=")[1].split()[0] for line in log]
        time.sleep(0.02)
    assert seen == [row.reason for _, row, _ in rows]
    for line, (name, _, _) in zip(log, rows, strict=True):
        assert " error=" in line, (name, line)
        assert " protocol=" in line, (name, line)
    assert "Traceback" not in send.running.log()


def test_grpc_calls_see_the_same_failures(send: Any) -> None:
    for name, what in {**NAMED, **POLICIES}.items():
        row = REPLIES[name] if name in NAMED else policy_row(name)
        if name == "oidc 500":
            continue
        answer = send(what, "content-type: application/grpc\r\n")
        code = 14 if name == "no_valid_backends" else GRPC.get(row.status, 2)
        assert (answer.status, answer.body) == (200, ""), (name, answer)
        assert answer.fields["grpc-status"] == str(code), (name, answer)
        assert answer.fields["content-type"] == "application/grpc"
        if row.body and not row.body.startswith("{"):
            assert answer.fields["grpc-message"].startswith(row.body.split("{")[0][:12]), (name, answer)


def test_a_token_endpoint_that_is_away(send: Any) -> None:
    first = send(Ask("/away"))
    assert first.status == 302
    state = first.fields["location"].split("state=")[1].split("&")[0]
    cookie = first.fields["set-cookie"].split(";")[0]
    answer = send(Ask(f"/away/done?code=x&state={state}", f"cookie: {cookie}\r\n"))
    row = policy_row("oidc 500")
    assert (answer.status, answer.body) == (row.status, row.body)


def test_bodies_of_json_rows_are_json() -> None:
    for _, row, _ in POLICY_ROWS:
        if row.body.startswith("{"):
            assert set(json.loads(row.body)) == {"error", "error_description"}
