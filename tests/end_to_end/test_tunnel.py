"""`backendTunnel`: backends, MCP targets and LLM providers through a proxy."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from tests.end_to_end.connect_proxy import ConnectProxy
from tests.end_to_end.test_federation import SAMPLE, Raw, config
from tests.end_to_end.test_tls import tls_upstream

pytestmark = pytest.mark.warm
KEY = "Basic cHJveHk6aHVudGVyMg=="


@pytest.fixture
def proxy() -> Iterator[ConnectProxy]:
    found = ConnectProxy({})
    yield found
    found.stop()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[trustme.CA, Path]:
    found, path = trustme.CA(), tmp_path_factory.mktemp("ca") / "ca.pem"
    found.cert_pem.write_to_path(path)
    return found, path


def tunnel(port: int, **policies: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"proxy": {"host": f"127.0.0.1:{port}"}}
    return {"backendTunnel": found | ({"policies": policies} if policies else {})}


def web(*backends: dict[str, Any], more: str = "") -> str:
    routes = [
        {"matches": [{"path": {"pathPrefix": f"/{number}"}}], "backends": [backend]}
        for number, backend in enumerate(backends)
    ]
    return f"gateways: {{default: {{port: {{port}}}}}}\nroutes: {json.dumps(routes)}\n{more}"


def test_a_backend_behind_tls_is_reached_by_its_name(
    gateway: Callable[..., Any], proxy: ConnectProxy, authority: tuple[trustme.CA, Path]
) -> None:
    ca, path = authority
    # A name that nobody but the proxy can find.
    proxy.places["inner.test:8443"] = tls_upstream(ca, "inner.test")
    policies = {"backendTLS": {"root": str(path)}, **tunnel(proxy.port, backendAuth={"key": KEY})}
    running = gateway(web({"host": "inner.test:8443", "policies": policies}))
    with httpx.Client() as client:
        for _ in range(3):
            answer = client.get(f"{running.url}/0")
            assert (answer.status_code, answer.text) == (200, "secure inner.test:8443")
    assert set(proxy.asked) == {
        f"CONNECT inner.test:8443 HTTP/1.1\r\nhost: inner.test:8443\r\nproxy-authorization: {KEY}\r\n\r\n"
    }
    assert len(proxy.asked) < 3, "no connection was kept"
    _, dump = running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")
    assert f'"host":"127.0.0.1:{proxy.port}"' in dump.replace(" ", "").replace("\n", "")
    assert KEY not in dump + running.log()


def test_plain_backends_with_and_without_a_proxy_share_no_connection(
    gateway: Callable[..., Any], proxy: ConnectProxy, echo: int
) -> None:
    place = f"127.0.0.1:{echo}"
    proxy.places[place] = echo
    named = f"backends: [{{name: out, host: '127.0.0.1:{proxy.port}', policies: {{backendAuth: {{key: abc}}}}}}]\n"
    running = gateway(web(
        {"host": place},
        {"host": place, "policies": tunnel(proxy.port)},
        {"host": place, "policies": {"backendTunnel": {"proxy": {"backend": "/out"}}}},
        more=named,
    ))  # fmt: skip
    with httpx.Client() as client:
        for _ in range(2):
            for number in range(3):
                body = client.post(f"{running.url}/{number}", content=b"x" * 70_000).json()
                assert (body["method"], body["body"]) == ("POST", "x" * 70_000)
                assert "proxy-authorization" not in {name.lower() for name, _ in body["headers"]}
    assert len(proxy.asked) == 2
    assert sorted("bearer abc" in head.lower() for head in proxy.asked) == [False, True]


def test_a_proxy_behind_tls(
    gateway: Callable[..., Any], authority: tuple[trustme.CA, Path]
) -> None:
    ca, path = authority
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("proxy.test").configure_cert(context)
    proxy = ConnectProxy({"inner.test:443": tls_upstream(ca, "inner.test")}, context)
    outer = tunnel(proxy.port, backendTLS={"root": str(path), "hostname": "proxy.test"})
    inner = {"backendTLS": {"root": str(path)}}
    running = gateway(web(
        {"host": "inner.test:443", "policies": {**inner, **outer}},
        {"host": "inner.test:443", "policies": {**inner, **tunnel(proxy.port, backendTLS={"root": str(path), "hostname": "no.test"})}},
    ))  # fmt: skip
    assert httpx.get(f"{running.url}/0").text == "secure inner.test"
    assert httpx.get(f"{running.url}/1").status_code == 503
    proxy.stop()


REFUSALS = [
    (b"HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n", "status 407"),
    (b"HTTP/1.1 502 Bad Gateway\r\n\r\nsome secret of the proxy", "status 502"),
    (b"HTTP/1.1 301 Moved\r\nlocation: http://evil.test/\r\n\r\n", "status 301"),
    (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 9000 + b"\r\n\r\n", "a head of more than 8192 bytes"),
    (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "more than its answer"),
    (b"SSH-2.0-x\r\n\r\n", "no HTTP"),
    (b"HTTP/1.1 200 OK\r\n", "closed the connection"),
]  # fmt: skip


def test_a_proxy_that_opens_no_tunnel(gateway: Callable[..., Any], proxy: ConnectProxy) -> None:
    running = gateway(web({"host": "inner.test:80", "policies": tunnel(proxy.port)}))
    for answer, reason in REFUSALS:
        proxy.answer = answer
        found = httpx.get(f"{running.url}/0")
        assert found.status_code == 503, reason
        assert reason in found.text or reason in running.log(), (reason, found.text)
        assert "secret" not in found.text
    proxy.stop()
    assert httpx.get(f"{running.url}/0").status_code == 503


@pytest.mark.parametrize("kind", ["plain", "several", "sse", "openapi"])
def test_mcp_targets(
    gateway: Callable[..., Any], proxy: ConnectProxy, sample: Callable[..., int], echo: int, kind: str
) -> None:
    host = "mcp.test:80"
    way = json.dumps(tunnel(proxy.port))
    if kind == "openapi":
        proxy.places[host] = echo
        document = {"openapi": "3.0.0", "paths": {"/call": {"get": {"operationId": "call"}}}}
        one = f"openapi: {{host: 'http://{host}', schema: {json.dumps(document)}}}"
    else:
        proxy.places[host] = sample("mcp_server", "--http", "127.0.0.1:0")
        one = f"mcp: {{host: 'http://{host}/mcp'}}"
    if kind == "sse":
        from tests.end_to_end.recorder import Recorder

        recorder = Recorder()
        proxy.places[host] = recorder.port
        one = f"sse: {{host: 'http://{host}/r/x/sse'}}"
    targets = {"far": f"{one}\n    policies: {way}", **({"near": SAMPLE} if kind == "several" else {})}
    raw = Raw(gateway(config(targets)))
    name = {"plain": "echo", "several": "far_echo"}.get(kind, "call")
    found = raw.ask("tools/call", name=name, arguments={"message": "through"} if "echo" in name else {})
    assert "result" in found, found
    assert not found["result"].get("isError")
    assert proxy.asked
    assert {head.split(" ")[1] for head in proxy.asked} == {host}


def test_llm_providers(gateway: Callable[..., Any], proxy: ConnectProxy, sample: Callable[..., int]) -> None:
    proxy.places["llm.test:80"] = sample("llm_provider", "--api-key", "sk-sample")
    text = f"""
        gateways: {{default: {{port: {{port}}}}}}
        llm:
          models:
          - name: sample
            provider: openai
            params: {{baseUrl: "http://llm.test/v1", apiKey: sk-sample}}
            backendTunnel: {{proxy: {{host: "127.0.0.1:{proxy.port}"}}}}
    """
    running = gateway(text)
    asked = {"model": "sample", "messages": [{"role": "user", "content": "hi"}]}
    answer = httpx.post(f"{running.url}/v1/chat/completions", json=asked, timeout=20)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"] == "You said: hi"
    assert len(proxy.asked) == 1
