"""`policies` of `backendTunnel`: what a proxy is sent with each request for a tunnel, and proxies behind proxies."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.end_to_end.cloud_stand_in import Clouds
from tests.end_to_end.connect_proxy import ConnectProxy
from tests.end_to_end.ext_authz_rig import HttpAuthorizer
from tests.end_to_end.running import Gateway
from tests.end_to_end.tls_rig import tls_upstream

pytestmark = [pytest.mark.warm, pytest.mark.http1(reason="the proxy counts connections, and HTTP/2 is tried first")]
KEY = ec.generate_private_key(ec.SECP256R1())
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture
def proxies() -> Iterator[Callable[..., ConnectProxy]]:
    """Starts proxies that lead to these places."""
    found: list[ConnectProxy] = []

    def start(places: dict[str, int], tls: ssl.SSLContext | None = None) -> ConnectProxy:
        found.append(ConnectProxy(places, tls))
        return found[-1]

    yield start
    for one in found:
        one.stop()


def text(backend: str, policies: dict[str, Any], *named: dict[str, Any], **inner: Any) -> str:
    way = {"backendTunnel": {"proxy": {"backend": "proxy"}}, **inner}
    entries = [{"name": "proxy", "policies": policies, **(named[0] if named else {})}, *named[1:]]
    routes = [{"backends": [{"host": backend, "policies": way}]}]
    return f"gateways: {{default: {{port: {{port}}}}}}\nroutes: {json.dumps(routes)}\nbackends: {json.dumps(entries)}\n"


def fields(head: str) -> dict[str, str]:
    lines = head.split("\r\n")[1:-2]
    return dict(line.split(": ", 1) for line in lines)


def test_credentials_and_headers(gateway: Callable[..., Any], proxies: Callable[..., ConnectProxy], echo: int) -> None:
    place = f"127.0.0.1:{echo}"
    proxy = proxies({place: echo})
    policies = {
        "backendAuth": {
            "jwtSign": {"signingKey": PEM, "alg": "ES256", "claims": {"iss": "gateway"}},
            "credentials": [{"key": "CANARY-extra", "location": {"header": {"name": "x-extra"}}}],
        },
        "requestHeaderModifier": {"set": {"x-set": "one"}},
        "transformations": {"request": {"set": {"x-asked": "request.method + ' ' + request.host"}}},
        "authorization": {"rules": ["request.host == '127.0.0.1' && request.method == 'CONNECT'"]},
    }
    running = gateway(text(place, policies, {"host": f"127.0.0.1:{proxy.port}"}))
    answer = httpx.get(running.url, headers={"authorization": "Bearer of-the-client"}, timeout=60)
    assert answer.status_code == 200, answer.text
    assert dict(answer.json()["headers"])["authorization"] == "Bearer of-the-client"
    [head] = proxy.asked
    found = fields(head)
    kind, _, token = found.pop("proxy-authorization").partition(" ")
    assert kind == "Bearer"
    assert jwt.decode(token, KEY.public_key(), ["ES256"])["iss"] == "gateway"
    assert found == {"host": place, "x-extra": "CANARY-extra", "x-set": "one", "x-asked": "CONNECT 127.0.0.1"}
    _, dump = running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")
    assert '"x-set":"one"' in "".join(dump.split())
    assert "CANARY" not in dump + running.log()


def test_a_credential_of_a_cloud_is_fetched_once(proxies: Callable[..., ConnectProxy], echo: int, tmp_path: Path) -> None:
    clouds = Clouds()
    names = [f"{number}.test:80" for number in range(3)]
    proxy = proxies(dict.fromkeys(names, echo))
    auth = {"azure": {"explicitConfig": {"clientSecret": {"tenant_id": "t1", "client_id": "c1", "client_secret": "CANARY-azure"}}}}
    entries = [{"name": "proxy", "host": f"127.0.0.1:{proxy.port}", "policies": {"backendAuth": auth}}]
    way = {"backendTunnel": {"proxy": {"backend": "proxy"}}}

    def configured(count: int) -> str:
        routes = [
            {"matches": [{"path": {"pathPrefix": f"/{name}"}}], "backends": [{"host": name, "policies": way}]}
            for name in names[:count]
        ]
        return f"gateways: {{default: {{port: {{port}}}}}}\nroutes: {json.dumps(routes)}\nbackends: {json.dumps(entries)}\n"

    running = Gateway(tmp_path, configured(1), 1, clouds.environment(tmp_path))
    try:
        running.wait_ready()
        # Each tunnel is opened after another reload: the routes before it keep their plans.
        for count in range(1, 4):
            if count > 1:
                running.reload(configured(count))
            answer = httpx.get(f"{running.url}/{names[count - 1]}", timeout=60)
            assert answer.status_code == 200, answer.text
            assert len(proxy.asked) == count
        tokens = {fields(head)["proxy-authorization"] for head in proxy.asked}
        assert len(tokens) == 1
        assert tokens.pop().startswith("Bearer ")
        assert len(clouds.asked("/t1")) == 1, "one token for all of them"
        assert "CANARY" not in running.log()
    finally:
        running.stop()
        clouds.close()


def test_policies_that_refuse(gateway: Callable[..., Any], proxies: Callable[..., ConnectProxy], echo: int) -> None:
    place = f"127.0.0.1:{echo}"
    proxy, service = proxies({place: echo}), HttpAuthorizer()
    service.status, service.body = 403, b"no tunnels today"
    asked = {"host": f"127.0.0.1:{service.port}", "protocol": {"http": {}}}
    running = gateway(text(place, {"extAuthz": asked}, {"host": f"127.0.0.1:{proxy.port}"}))
    answer = httpx.get(running.url, timeout=60)
    assert answer.status_code == 503
    assert not proxy.asked
    running.wait_log("a policy of the proxy refuses the tunnel")
    [seen] = service.seen
    assert (seen.method, seen.target) == ("GET", "/")
    service.status = 200
    assert httpx.get(running.url, timeout=60).status_code == 200
    assert len(proxy.asked) == 1
    running.reload(text(place, {"authorization": {"rules": ["request.method == 'GET'"]}}, {"host": f"127.0.0.1:{proxy.port}"}))
    assert httpx.get(running.url, timeout=60).status_code == 503
    assert len(proxy.asked) == 1


def test_a_proxy_that_does_not_answer_in_time(gateway: Callable[..., Any], proxies: Callable[..., ConnectProxy]) -> None:
    silent = threading.Event()
    proxy = proxies({})
    proxy.before_answer = silent.wait
    policies = {"http": {"requestTimeout": "100ms"}}
    running = gateway(text("inner.test:80", policies, {"host": f"127.0.0.1:{proxy.port}"}))
    assert httpx.get(running.url, timeout=60).status_code == 504
    assert len(proxy.asked) == 1
    silent.set()


def test_proxies_behind_proxies(gateway: Callable[..., Any], proxies: Callable[..., ConnectProxy], tmp_path: Path) -> None:
    ca, path = trustme.CA(), tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(path)
    contexts = []
    for name in ("outer.test", "inner.test"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert(name).configure_cert(context)
        contexts.append(context)
    inner = proxies({"backend.test:443": tls_upstream(ca, "backend.test")}, contexts[1])
    outer = proxies({"inner.test:8443": inner.port}, contexts[0])
    policies = {
        "backendTLS": {"root": str(path)},
        "backendAuth": {"key": "of-inner"},
        "backendTunnel": {
            "proxy": {"host": f"127.0.0.1:{outer.port}"},
            "policies": {"backendTLS": {"root": str(path), "hostname": "outer.test"}, "backendAuth": {"key": "of-outer"}},
        },
    }
    configured = text("backend.test:443", policies, {"host": "inner.test:8443"}, backendTLS={"root": str(path)})
    running = gateway(configured)
    for _ in range(2):
        answer = httpx.get(running.url, timeout=60)
        assert (answer.status_code, answer.text) == (200, "secure backend.test")
    told = [(head.split(" ")[1], fields(head)["proxy-authorization"]) for head in (*outer.asked, *inner.asked)]
    assert set(told) == {("inner.test:8443", "Bearer of-outer"), ("backend.test:443", "Bearer of-inner")}
    # Who of them refuses is told.
    inner.answer = b"HTTP/1.1 407 Denied\r\ncontent-length: 0\r\n\r\n"
    running = gateway(configured)
    assert httpx.get(running.url, timeout=60).status_code == 503
    running.wait_log("the proxy refused the tunnel with status 407")
