"""Each kind of policy holds for the calls to each kind of helper service.

Helpers are what policies call: authorization services, token endpoints, webhooks and vendors of prompt guards, collectors, and
the policy servers of MCP.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.end_to_end.conftest import Gateway, free_port
from tests.end_to_end.connect_proxy import ConnectProxy
from tests.end_to_end.federation_rig import SAMPLE, Raw, config
from tests.end_to_end.identity_rig import token
from tests.end_to_end.mcp_credentials_rig import jwt_auth
from tests.end_to_end.policy_peer import Policy
from tests.end_to_end.running import NOTHING

pytestmark = pytest.mark.warm

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
COMPLETION = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
}  # fmt: skip
# What a helper is asked at, and what it answers.
ANSWERS = {
    "/authz": {}, "/token": {"access_token": "t", "token_type": "Bearer", "expires_in": 3600}, "/request": {"action": {}},
    "/contentsafety": {"categoriesAnalysis": []}, "/v1/traces": {}, "/v1/chat": COMPLETION,
}  # fmt: skip


class Asked(NamedTuple):
    """A request as it came."""

    method: str
    target: str
    fields: dict[str, str]
    peer: int


class Service:
    """Answers for all helpers; `held`: answers wait for it."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.seen: list[Asked] = []
        self.held = threading.Event()
        self.held.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                fields = {name.lower(): value for name, value in self.headers.items()}
                outer.seen.append(Asked(self.command, self.path, fields, self.client_address[1]))
                outer.held.wait(60)
                body = json.dumps(next(value for start, value in ANSWERS.items() if self.path.startswith(start))).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = handle_any

            def log_message(self, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Clients that have given up are no failure."""

        self.server = Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def at(self, start: str) -> list[Asked]:
        """What came for a helper."""
        return [one for one in self.seen if one.target.startswith(start)]

    def stop(self) -> None:
        self.held.set()
        self.server.shutdown()
        self.server.server_close()


def wait_for(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


# The path of a client's request to where the helper is asked.
HELPERS = {"/authz": "/authz", "/token": "/token", "/webhook": "/request", "/vendor": "/contentsafety", "/traced": "/v1/traces"}


def configured(port: int, provider: int, policies: dict[str, Any], scheme: str = "http") -> str:
    """A gateway with all helpers at one port, with these policies."""
    place = f"127.0.0.1:{port}"
    guarded = {"backendAuth": {"key": "k"}, **policies}
    ai = {"name": "ai", "provider": {"openAI": {"model": "m"}}, "hostOverride": f"http://127.0.0.1:{provider}"}
    passed = {"directResponse": {"status": 200, "body": "ok"}}

    def model(guard: dict[str, Any]) -> dict[str, Any]:
        inner = {"backendAuth": {"key": "p"}, "ai": {"promptGuard": {"request": [guard]}}}
        return {"backends": [{"ai": ai, "policies": inner}], "policies": jwt_auth()}

    exchange = {"oauthTokenExchange": {"host": place, "path": "/token", "policies": policies}}
    routes = {
        "/authz": {"policies": {**jwt_auth(), **passed, "extAuthz": {"host": place, "protocol": {"http": {}}, "policies": policies}}},
        "/token": {"policies": jwt_auth(), "backends": [{"host": f"127.0.0.1:{provider}", "policies": {"backendAuth": exchange}}]},
        "/webhook": model({"webhook": {"target": {"backend": "hook"}}}),
        "/vendor": model({"azureContentSafety": {"endpoint": f"{scheme}://{place}", "policies": guarded}}),
        "/traced": {"policies": {**jwt_auth(), **passed}},
    }
    rewritten = {"path": {"full": "/v1/chat/completions"}}
    for path in ("/token", "/webhook", "/vendor"):
        routes[path]["policies"] = {**routes[path]["policies"], "urlRewrite": rewritten}
    found = {
        "gateways": {"default": {"port": "{port}"}},
        "backends": [{"name": "hook", "host": place, "policies": policies}],
        "frontendPolicies": {"tracing": {"host": place, "protocol": "http", "randomSampling": True, "policies": policies}},
        "routes": [{"name": path[1:], "matches": [{"path": {"exact": path}}], **route} for path, route in routes.items()],
    }
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in found.items()).replace('"{port}"', "{port}")


def ask(running: Gateway, path: str) -> int:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
    fields = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
    request = urllib.request.Request(running.url + path, body, fields, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


TOKEN = token(exp=time.time() + 3600)


@pytest.fixture
def services(request: pytest.FixtureRequest) -> Iterator[Callable[..., Service]]:
    made: list[Service] = []

    def make(tls: ssl.SSLContext | None = None) -> Service:
        made.append(Service(tls))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def _key_in(place: dict[str, Any]) -> dict[str, Any]:
    return {"backendAuth": {"key": {"value": "CANARY", "location": place}}}


def _signed(asked: Asked) -> bool:
    scheme, _, text = asked.fields["authorization"].partition(" ")
    return scheme == "Bearer" and jwt.decode(text, KEY.public_key(), algorithms=["RS256"])["who"] == "gateway"


# Policies, and what they make of a call.
KINDS: dict[str, tuple[dict[str, Any], Callable[[Asked], bool]]] = {
    "requestHeaderModifier": (
        {"requestHeaderModifier": {"set": {"x-set": "1", "user-agent": "gw"}, "add": {"x-add": "2"}}},
        lambda asked: (asked.fields["x-set"], asked.fields["x-add"], asked.fields["user-agent"]) == ("1", "2", "gw"),
    ),
    "transformations": (
        {"transformations": {"request": {"set": {"x-cel": 'request.method + " " + request.path'}}}},
        lambda asked: asked.fields["x-cel"] == f"{asked.method} {asked.target.partition('?')[0]}",
    ),
    "key in a header": (_key_in({"header": {"name": "x-key", "prefix": "K "}}), lambda asked: asked.fields["x-key"] == "K CANARY"),
    "key in the query": (_key_in({"queryParameter": {"name": "key"}}), lambda asked: "key=CANARY" in asked.target),
    "key in a cookie": (_key_in({"cookie": {"name": "key"}}), lambda asked: "key=CANARY" in asked.fields["cookie"]),
    "several credentials": (
        {"backendAuth": {"key": "main", "credentials": [{"key": "more", "location": {"header": {"name": "x-more"}}}]}},
        lambda asked: asked.fields["x-more"] == "more",
    ),
    "jwtSign": ({"backendAuth": {"jwtSign": {"signingKey": PEM, "claims": {"who": "gateway"}}}}, _signed),
    "passthrough": ({"backendAuth": {"passthrough": {}}}, lambda asked: asked.fields["authorization"] == f"Bearer {TOKEN}"),
}  # fmt: skip


def all_called(running: Gateway, service: Service, but: tuple[str, ...] = ()) -> dict[str, Asked]:
    """Call each helper, and return what it got."""
    found = {}
    for path, start in HELPERS.items():
        if path not in but:
            assert ask(running, path) == 200, (path, running.log()[-2000:])
            found[path] = wait_for(lambda start=start: service.at(start))[-1]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_holds_at_each_helper(kind: str, gateway: Callable[..., Gateway], services: Callable[..., Service]) -> None:
    policies, holds = KINDS[kind]
    service, provider = services(), services()
    running = gateway(configured(service.port, provider.port, policies))
    # Spans belong to no request of a client.
    but = ("/traced",) if kind == "passthrough" else ()
    found = all_called(running, service, but)
    assert {path: holds(asked) for path, asked in found.items()} == dict.fromkeys(found, True)
    # What is for helpers is not sent to backends.
    assert not any("CANARY" in str(one) for one in provider.seen)


def test_tls_and_who_the_helper_is(gateway: Callable[..., Gateway], services: Callable[..., Service], tmp_path: Path) -> None:
    authority, stranger = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("helper.test").configure_cert(context)
    service, provider = services(context), services()
    for name, root in (("right", authority), ("wrong", stranger)):
        root.cert_pem.write_to_path(str(tmp_path / f"{name}.pem"))
    policies = {"backendTLS": {"root": str(tmp_path / "right.pem"), "hostname": "helper.test"}}
    running = gateway(configured(service.port, provider.port, policies, "https"))
    assert len(all_called(running, service)) == len(HELPERS)
    count = len(service.seen)
    policies["backendTLS"]["root"] = str(tmp_path / "wrong.pem")
    other = gateway(configured(service.port, provider.port, policies, "https"))
    assert {path: ask(other, path) == 200 for path in HELPERS} == {path: path == "/traced" for path in HELPERS}
    assert len(service.seen) == count


def test_a_tunnel_leads_to_each_helper(gateway: Callable[..., Gateway], services: Callable[..., Service]) -> None:
    service, provider = services(), services()
    proxy = ConnectProxy({f"127.0.0.1:{service.port}": service.port})
    try:
        policies = {"backendTunnel": {"proxy": {"host": f"127.0.0.1:{proxy.port}"}}}
        running = gateway(configured(service.port, provider.port, policies))
        found = all_called(running, service)
        # Connections are shared by helpers at one place; each came from the proxy.
        assert found
        assert 1 <= len(proxy.asked) <= len(HELPERS)
        assert all(head.startswith(f"CONNECT 127.0.0.1:{service.port} ") for head in proxy.asked)
        peers = {asked.peer for asked in service.seen}
        assert len(peers) <= len(proxy.asked)
    finally:
        proxy.stop()


def test_a_helper_that_is_slow_has_the_time_that_it_is_given(gateway: Callable[..., Gateway], services: Callable[..., Service]) -> None:
    service, provider = services(), services()
    running = gateway(configured(service.port, provider.port, {"http": {"requestTimeout": "200ms"}}))
    service.held.clear()
    for path, start in HELPERS.items():
        assert (ask(running, path) == 200) is (path == "/traced"), path
        wait_for(lambda start=start: service.at(start))
    service.held.set()
    assert all_called(running, service)


class FirstBytes:
    """Notes what connections begin with, and closes them."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self.seen.append(connection.recv(3))

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.mark.parametrize(("version", "begin"), [("HTTP/2", b"PRI"), ("HTTP/1.1", b"POS")])
def test_the_protocol_that_is_configured_is_spoken(
    version: str, begin: bytes, gateway: Callable[..., Gateway], services: Callable[..., Service]
) -> None:
    provider, running = services(), gateway(NOTHING)
    for path in HELPERS:
        peer = FirstBytes()
        try:
            running.reload(configured(peer.port, provider.port, {"http": {"version": version}}))
            ask(running, path)
            first = wait_for(lambda peer=peer: list(peer.seen))
            assert set(first) == {begin}, path
        finally:
            peer.stop()


def keepalive_timers(port: int) -> set[str]:
    """The timers of connections to a port (proc(5), /proc/net/tcp): 00 none, 02 keepalive."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        parts = line.split()
        if parts[2].endswith(f":{port:04X}") and parts[3] == "01":
            found.add(parts[5].partition(":")[0])
    return found


@pytest.mark.parametrize("enabled", [True, False])
def test_keepalives_of_connections(enabled: bool, gateway: Callable[..., Gateway], services: Callable[..., Service]) -> None:
    service, provider = services(), services()
    policies = {"tcp": {"keepalives": {"enabled": enabled}, "connectTimeout": "5s"}}
    running = gateway(configured(service.port, provider.port, policies))
    all_called(running, service)
    wait_for(lambda: keepalive_timers(service.port) == {"02" if enabled else "00"})


GRPC_KINDS: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], bool]]] = {
    "requestHeaderModifier": ({"requestHeaderModifier": {"set": {"x-set": "1"}}}, lambda fields: fields["x-set"] == "1"),
    "transformations": (
        {"transformations": {"request": {"set": {"x-cel": "request.path"}}}},
        lambda fields: fields["x-cel"].endswith("/CheckRequest") or fields["x-cel"].endswith("/CheckResponse"),
    ),
    "key in a header": (_key_in({"header": {"name": "x-key"}}), lambda fields: fields["x-key"] == "CANARY"),
    "several credentials": (
        {"backendAuth": {"key": "main", "credentials": [{"key": "more", "location": {"header": {"name": "x-more"}}}]}},
        lambda fields: (fields["x-more"], fields["authorization"]) == ("more", "Bearer main"),
    ),
    "jwtSign": (
        {"backendAuth": {"jwtSign": {"signingKey": PEM, "claims": {"who": "gateway"}}}},
        lambda fields: jwt.decode(fields["authorization"].removeprefix("Bearer "), KEY.public_key(), algorithms=["RS256"])["who"] == "gateway",
    ),
}  # fmt: skip


def served(policies: dict[str, Any], port: int) -> str:
    processor = {"kind": "remote", "host": f"127.0.0.1:{port}", "methods": {"tools/call": "full"}, "policies": policies}
    return config({"a": SAMPLE}, f"  policies: {json.dumps({'mcpGuardrails': {'processors': [processor]}})}\n")


@pytest.mark.parametrize("kind", GRPC_KINDS)
def test_policies_of_a_policy_server_of_mcp(kind: str, gateway: Callable[..., Gateway]) -> None:
    policies, holds = GRPC_KINDS[kind]
    policy = Policy()
    try:
        raw = Raw(gateway(served(policies, policy.port)))
        assert raw.text("echo", message="x") == "Echo: x"
        assert policy.fields
        assert all(holds(fields) for fields in policy.fields)
    finally:
        policy.stop()


def test_a_policy_server_of_mcp_through_a_tunnel(gateway: Callable[..., Gateway]) -> None:
    policy = Policy()
    proxy = ConnectProxy({f"127.0.0.1:{policy.port}": policy.port})
    try:
        tunnel = {"backendTunnel": {"proxy": {"host": f"127.0.0.1:{proxy.port}"}}}
        raw = Raw(gateway(served(tunnel, policy.port)))
        assert raw.text("echo", message="x") == "Echo: x"
        assert policy.seen
        assert len(proxy.asked) == 1
    finally:
        proxy.stop()
        policy.stop()


def test_after_a_failed_connect_calls_fail_at_once_for_a_while(gateway: Callable[..., Gateway], services: Callable[..., Service]) -> None:
    """Nobody listens: most calls are not even tried, and the helper is found again when it is there."""
    port = free_port()
    raw = Raw(gateway(served({}, port)))

    def told() -> str:
        return str(raw.ask("tools/call", name="echo", arguments={"message": "x"}).get("error"))

    wait_for(lambda: "is not retried yet" in told())
    policy = Policy(port)
    try:
        wait_for(lambda: told() == "None")
        assert policy.seen
    finally:
        policy.stop()
