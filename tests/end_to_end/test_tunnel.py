"""`backendTunnel`: backends, MCP targets and LLM providers through a proxy."""

from __future__ import annotations

import concurrent.futures
import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from tests.end_to_end.connect_proxy import ConnectProxy
from tests.end_to_end.federation_rig import SAMPLE, Raw, config
from tests.end_to_end.tls_rig import tls_upstream

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
    with httpx.Client(timeout=60) as client:
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


@pytest.mark.http1(reason="the proxy counts connections, and HTTP/2 is tried first")
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
    with httpx.Client(timeout=60) as client:
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
    assert httpx.get(f"{running.url}/0", timeout=60).text == "secure inner.test"
    assert httpx.get(f"{running.url}/1", timeout=60).status_code == 503
    proxy.stop()


REFUSALS = [
    (b"HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n", "status 407"),
    (b"HTTP/1.1 502 Bad Gateway\r\n\r\nsome secret of the proxy", "status 502"),
    (b"HTTP/1.1 301 Moved\r\nlocation: http://evil.test/\r\n\r\n", "status 301"),
    (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 9000 + b"\r\n\r\n", "a head of more than 8192 bytes"),
    (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "data after its response"),
    (b"SSH-2.0-x\r\n\r\n", "not HTTP"),
    (b"HTTP/1.1 200 OK\r\n", "closed the connection"),
]  # fmt: skip


def test_a_proxy_that_opens_no_tunnel(gateway: Callable[..., Any], proxy: ConnectProxy) -> None:
    running = gateway(web({"host": "inner.test:80", "policies": tunnel(proxy.port)}))
    for answer, reason in REFUSALS:
        proxy.answer = answer
        found = httpx.get(f"{running.url}/0", timeout=60)
        assert found.status_code == 503, reason
        if reason not in found.text:
            running.wait_log(reason)
        assert "secret" not in found.text
    proxy.stop()
    assert httpx.get(f"{running.url}/0", timeout=60).status_code == 503


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


# -- a service as proxy ----------------------------------------------------------------------------------------------------
def service(*ports: int, tls: bool = False) -> str:
    """Proxies as the workloads of one service; the first of them has most of the share."""
    workloads = [
        {"uid": f"w{number}", "name": f"w{number}", "namespace": "n", "workloadIps": ["127.0.0.1"],
         "services": {"n/proxy.test": {"3128": port}}, "capacity": 1000 if number == 0 else 1}
        for number, port in enumerate(ports)
    ]  # fmt: skip
    services = [{"name": "p", "namespace": "n", "hostname": "proxy.test", "ports": {"3128": 3128}}]
    return f"services: {json.dumps(services)}\nworkloads: {json.dumps(workloads)}\n"


def through_service(**policies: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"proxy": {"service": {"name": "n/proxy.test", "port": 3128}}}
    return {"backendTunnel": found | ({"policies": policies} if policies else {})}


@pytest.mark.http1(reason="the proxy counts connections, and HTTP/2 is tried first")
def test_a_service_is_the_proxy(
    gateway: Callable[..., Any], proxy: ConnectProxy, authority: tuple[trustme.CA, Path], echo: int
) -> None:
    ca, path = authority
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("proxy.test").configure_cert(context)
    secure = ConnectProxy({"inner.test:8443": tls_upstream(ca, "inner.test")}, context)
    place = f"127.0.0.1:{echo}"
    proxy.places[place] = echo
    text = web({"host": place, "policies": through_service(backendAuth={"key": KEY})}, more=service(proxy.port))
    running = gateway(text)
    assert httpx.post(f"{running.url}/0", content=b"x", timeout=60).json()["body"] == "x"
    assert proxy.asked == [f"CONNECT {place} HTTP/1.1\r\nhost: {place}\r\nproxy-authorization: {KEY}\r\n\r\n"]
    _, dump = running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")
    assert '"service":{"name":"n/proxy.test","port":3128}' in "".join(dump.split())
    assert KEY not in dump + running.log()
    # Its certificate is checked against the name of the service, unless its policies say another.
    inner = {"backendTLS": {"root": str(path)}}
    cases = ({"root": str(path)}, {"root": str(path), "hostname": "no.test"}, {})
    backends = [{"host": "inner.test:8443", "policies": {**inner, **through_service(backendTLS=case)}} for case in cases]
    running = gateway(web(*backends, more=service(secure.port)))
    assert [httpx.get(f"{running.url}/{number}", timeout=60).status_code for number in range(3)] == [200, 503, 503]
    secure.stop()


def test_a_proxy_that_is_gone_is_passed_over(gateway: Callable[..., Any], proxy: ConnectProxy, echo: int) -> None:
    from tests.end_to_end.running import free_port

    place, dead = f"127.0.0.1:{echo}", free_port()
    proxy.places[place] = echo
    backend = {"host": place, "policies": through_service()}
    running = gateway(web(backend, more=service(dead, proxy.port)), 2)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: httpx.post(f"{running.url}/0", content=str(number), timeout=60).status_code, range(40)))
    assert found == [200] * 40
    assert proxy.asked
    _, dump = running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")
    assert '"health":0' in "".join(dump.split()), "all workers know that one of them fails"
    # One that nobody can reach is told of; so is a service that has no place at all.
    running = gateway(web(backend, more=service(dead, free_port())))
    answer = httpx.get(f"{running.url}/0", timeout=60)
    assert (answer.status_code, "upstream call failed" in answer.text) == (503, True)
    running = gateway(web(backend, more=service()))
    assert httpx.get(f"{running.url}/0", timeout=60).status_code == 503
    running.wait_log("the service of the proxy has no endpoint")


def test_a_proxy_s_refusal_is_final(gateway: Callable[..., Any], proxy: ConnectProxy) -> None:
    other = ConnectProxy({})
    proxy.answer = other.answer = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
    running = gateway(web({"host": "inner.test:80", "policies": through_service()}, more=service(proxy.port, other.port)))
    assert httpx.get(f"{running.url}/0", timeout=60).status_code == 503
    assert len(proxy.asked) + len(other.asked) == 1
    running.wait_log("the proxy refused the tunnel with status 403")
    other.stop()


@pytest.mark.parametrize("kind", ["plain", "several", "sse", "llm"])
def test_all_kinds_of_backends_through_a_service(
    gateway: Callable[..., Any], proxy: ConnectProxy, sample: Callable[..., int], kind: str
) -> None:
    way = json.dumps(through_service())
    if kind == "llm":
        proxy.places["llm.test:80"] = sample("llm_provider", "--api-key", "sk-sample")
        model = {"name": "sample", "provider": "openai", "params": {"baseUrl": "http://llm.test/v1", "apiKey": "sk-sample"}}
        models = json.dumps([{**model, **through_service()}])
        running = gateway("gateways: {default: {port: {port}}}\nllm: {models: " + models + "}\n" + service(proxy.port))
        asked = {"model": "sample", "messages": [{"role": "user", "content": "hi"}]}
        answer = httpx.post(f"{running.url}/v1/chat/completions", json=asked, timeout=60)
        assert answer.json()["choices"][0]["message"]["content"] == "You said: hi"
        assert len(proxy.asked) == 1
        return
    if kind == "sse":
        from tests.end_to_end.recorder import Recorder

        proxy.places["mcp.test:80"] = Recorder().port
        one = "sse: {host: 'http://mcp.test:80/r/x/sse'}"
    else:
        proxy.places["mcp.test:80"] = sample("mcp_server", "--http", "127.0.0.1:0")
        one = "mcp: {host: 'http://mcp.test:80/mcp'}"
    targets = {"far": f"{one}\n    policies: {way}", **({"near": SAMPLE} if kind == "several" else {})}
    raw = Raw(gateway(config(targets) + service(proxy.port)))
    name = {"plain": "echo", "several": "far_echo", "sse": "call"}[kind]
    assert not raw.ask("tools/call", name=name, arguments={"message": "through"})["result"].get("isError")
    assert {head.split(" ")[1] for head in proxy.asked} == {"mcp.test:80"}


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
    answer = httpx.post(f"{running.url}/v1/chat/completions", json=asked, timeout=60)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"] == "You said: hi"
    assert len(proxy.asked) == 1
