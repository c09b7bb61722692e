"""Every configuration on the pages of policies and TLS does what its text says, on loopback ports and with an echo behind it."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.end_to_end.asking import Answer, ask
from tests.end_to_end.running import Gateway
from tests.end_to_end.spiffe_rig import TrustDomain, WorkloadApi, backend, client, response
from tests.end_to_end.tls_rig import (
    authority,  # noqa: F401
    issue,
    tls_upstream,
)

pytestmark = pytest.mark.warm

PAGE = (Path(__file__).parents[2] / "docs/policies.md").read_text()
BLOCKS = dict(re.findall(r"^## (.*?)(?: \(G\))?\n.*?^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
JSON = {"content-type": "application/json"}


class Case(NamedTuple):
    """A request and what comes of it: the status, and for echoed requests fields or a path that the backend saw."""

    status: int
    path: str = "/api/x"
    headers: dict[str, str] = {}
    method: str = "GET"
    body: str = ""
    answer: dict[str, str] = {}
    seen: dict[str, list[str]] = {}
    seen_path: str = ""
    text: str | None = None


CASES: dict[str, list[Case]] = {
    "Where to put a policy": [Case(200)],
    "Paths": [Case(403, path) for path in ("/admin", "/x/../admin", "/%61dmin", "/x/%2e%2e/admin", "//admin", "/x%2f..%2fadmin")]
    + [Case(200, "/x/../y%2Fz", seen_path="/y%2Fz"), Case(200, "/a//b", seen_path="/a//b")],
    "Header names": [Case(200, headers={"x_user": "eve"}, seen={"x_user": ["eve"]})],
    "cors": [
        Case(200, method="OPTIONS", headers={"origin": "https://x.app.example", "access-control-request-method": "POST"},
             answer={"access-control-allow-origin": "https://x.app.example", "access-control-allow-credentials": "true",
                     "access-control-allow-methods": "GET,POST", "access-control-max-age": "600"}),
        Case(200, headers={"origin": "https://app.example"}, answer={"access-control-expose-headers": "x-request-id"}),
    ],
    "oidc": [Case(401, text="oidc failure: the provider's metadata cannot be fetched")],
    "mcpAuthentication": [
        Case(401, "/mcp", method="POST", body="{}", answer={
            "www-authenticate": 'Bearer resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/mcp"'}),
        Case(200, "/.well-known/oauth-protected-resource/mcp", answer=JSON),
        Case(500, "/.well-known/oauth-authorization-server/mcp", text=""),
    ],
    "jwtAuth": [Case(401), Case(401, headers={"authorization": "Bearer a.b.c"})],
    "apiKey": [Case(200, headers={"x-api-key": "team-red-key"}, seen={"x-api-key": []}),
               Case(200, headers={"x-api-key": "foo"}), Case(401, headers={"x-api-key": "bar"}), Case(401)],
    "basicAuth": [Case(200, headers={"authorization": "Basic YWRhOnBhc3N3b3Jk"}, seen={"authorization": []}),
                  Case(401, answer={"www-authenticate": 'Basic realm="Team"'})],
    "authorization": [Case(200, headers={"x-team": "red"}), Case(403), Case(403, "/internal/x", {"x-team": "red"}),
                      Case(403, headers={"x-team": "red"}, method="POST")],
    # Nobody listens where the services of these would be.
    "extAuthz": [Case(403, text="external authorization failed")],
    "extProc": [Case(200), Case(200, method="POST", body="x" * 65536)],
    "inferenceRouting": [Case(500)],
    "remoteRateLimit": [Case(200), Case(500, headers={"x-user": "ada"}, text="rate limit failed")],
    "localRateLimit": [Case(200, answer={"x-ratelimit-limit": "100", "x-ratelimit-remaining": "99"})],
    "localRateLimit by team": [
        Case(200, headers={"authorization": f"Bearer {key}"}, answer={"x-ratelimit-limit": limit, "x-ratelimit-remaining": str(int(limit) - 1)})
        for key, limit in (("team-red-key", "1000"), ("team-blue-key", "200"), ("guest-key", "20"))
    ] + [Case(401)],
    "buffer": [Case(200, method="POST", body="x" * 65536), Case(413, method="POST", body="x" * 65537)],
    "transformations": [Case(200, headers={"x-debug": "1"}, seen={"x-user": ["nobody"], "x-debug": []},
                             seen_path="/v2/api/x", answer={"x-took": "200"})],
    "csrf": [Case(200, method="POST", headers={"origin": "https://other.example", "sec-fetch-site": "cross-site"}),
             Case(403, method="POST", headers={"origin": "https://evil.example", "sec-fetch-site": "cross-site"})],
    "requestHeaderModifier, responseHeaderModifier": [
        Case(200, headers={"x-debug": "1", "x-tenant": "blue"}, seen={"x-tenant": ["red"], "x-debug": []},
             answer={"x-served-by": "headgate"})],
    "urlRewrite": [Case(200, "/api/x?y=1", seen_path="/v2/x?y=1", seen={"host": ["internal.example"]}), Case(404, "/other")],
    "requestRedirect": [Case(301, "/a?b=c", answer={"location": "https://a.test/a?b=c"})],
    "delay": [Case(200), Case(200, headers={"x-wait": "50"}), Case(504, headers={"x-wait": "60000"}, text="request timeout")],
    "usageHeaders": [Case(200, "/v1/models")],
    "directResponse": [Case(200, "/version", text='{"version":"1","host":"a.test"}', answer=JSON),
                       Case(418, "/teapot", text="I am a teapot"), Case(200, "/other", seen_path="/other")],
    "requestMirror": [Case(200, seen_path="/api/x")],
    "timeout and retry": [Case(200, seen={"x-retry-attempt": []})],
    "backendAuth": [Case(200, "/a?b=c", seen_path="/a?b=c&api_key=backend-key", seen={"x-tenant-key": ["tenant-7"]})],
    # The echo of these tests knows no CONNECT.
    "Through a proxy: backendTunnel": [Case(503, text="upstream call failed: the proxy refused the tunnel with status 501")],
    # The echo of these tests reads no such headers: what it gets is no request.
    "Whose a connection is: proxyProtocol": [Case(502, text="upstream call failed: invalid response")],
    "health and sessionAffinity": [Case(200, headers={"x-user": "ada"})],
    "Access log and metric labels": [Case(200)],
}  # fmt: skip


def test_every_block_has_its_cases() -> None:
    assert set(CASES) == set(BLOCKS)


def check(case: Case, answer: Answer) -> None:
    assert answer.status == case.status, (case, answer.body)
    for name, value in case.answer.items():
        assert answer.headers[name] == value, (name, case)
    if case.text is not None:
        assert answer.body.decode() == case.text
    for name, values in case.seen.items():
        assert answer.got(name) == values, (name, case)
    if case.seen_path:
        assert answer.seen["path"] == case.seen_path


@pytest.mark.parametrize("title", CASES)
def test_an_example_does_what_it_says(title: str, gateway: Any, echo: int) -> None:
    text = BLOCKS[title].replace("port: 3000", "port: {port}").replace("127.0.0.1:8080", f"127.0.0.1:{echo}")
    # Places that do not exist here: the services' workloads, and providers on the Internet.
    text = re.sub(r"10\.0\.0\.\d", "127.0.0.1", text).replace("{80: 8080}", f"{{80: {echo}}}")
    text = text.replace("https://idp.example", "http://127.0.0.1:1").replace("proxy.corp.example:3128", f"127.0.0.1:{echo}")
    settings = ""
    if "config:" in text:
        # The rig writes a `config` of its own.
        found = re.search(r"^config:\n((?:  .*\n)+)", text, re.MULTILINE)
        assert found
        settings, text = found[1], text.replace(found[0], "")
    running = gateway(text, environment={"OIDC_COOKIE_SECRET": "5a" * 32}, settings=settings)
    for case in CASES[title]:
        check(case, ask(running, case.method, case.path, dict(case.headers), case.body))
    if title == "Access log and metric labels":
        for number in range(60):
            ask(running, path=f"/{number}")
        deadline = time.monotonic() + 40
        while "headers.accept-encoding=identity" not in running.log():
            ask(running)        # one in ten is logged, by chance
            assert time.monotonic() < deadline, running.log()
        line = next(line for line in running.log().splitlines() if "headers.accept" in line)
        assert " duration=" not in line
        assert running.metric('gw_requests_total{backend') >= 60
        json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")[1])


TLS_PAGE = (Path(__file__).parents[2] / "docs/tls.md").read_text()
# Of each section the first block of YAML.
TLS_BLOCKS = {
    section.partition("\n")[0]: found[1]
    for section in re.split(r"^##+ ", TLS_PAGE, flags=re.MULTILINE)[1:]
    if (found := re.search(r"^```yaml\n(.*?)^```", section, re.MULTILINE | re.DOTALL))
}


def hello(running: Gateway, context: ssl.SSLContext) -> tuple[int, bytes]:
    with (
        socket.create_connection(("127.0.0.1", running.port), timeout=60) as sock,
        context.wrap_socket(sock, server_hostname="site.test") as secure,
    ):
        secure.sendall(b"GET / HTTP/1.1\r\nhost: site.test\r\nconnection: close\r\n\r\n")
        answer = http.client.HTTPResponse(secure)
        answer.begin()
        return answer.status, answer.read()


class TlsPage:
    """Starts the gateway of a block. `folder` stands for its folders, and has the agent's socket."""

    def __init__(self, gateway: Callable[..., Gateway], folder: Path, agent: WorkloadApi) -> None:
        self._gateway, self.folder, self.agent = gateway, folder, agent

    def start(self, title: str, places: dict[str, str], environment: dict[str, str]) -> Gateway:
        text = TLS_BLOCKS[title].replace("certs/", f"{self.folder}/").replace("/run/spire", str(self.folder))
        for name, place in {"port: 8443": "port: {port}", "port: 3000": "port: {port}", **places}.items():
            text = text.replace(name, place)
        found = re.match(r"config:\n((?:  .*\n)+)", text)
        settings = found[1] if found else ""
        return self._gateway(text[found.end() :] if found else text, environment=environment, settings=settings)


@pytest.fixture
def page(gateway, tmp_path) -> Any:
    agent = WorkloadApi(tmp_path / "agent.sock")
    agent.start()
    yield TlsPage(gateway, tmp_path, agent)
    agent.stop()


def test_the_page_of_tls(page: TlsPage, authority) -> None:
    folder, own = page.folder, TrustDomain("td.test")
    issue(authority, folder, "site", "site.test")
    issue(authority, folder, "other", "other.test")
    authority.cert_pem.write_to_path(folder / "authority.pem")
    authority.private_key_pem.write_to_path(folder / "authority.key")
    own.issue("spiffe://td.test/ns/shop/sa/web").write(folder, "shop")
    own.issue("spiffe://td.test/other").write(folder, "other")
    page.agent.give(response(own.issue("spiffe://td.test/gateway"), own))
    variables = {name: (folder / file).read_text() for name, file in (("SITE_CERT", "site.pem"), ("SITE_KEY", "site.key"))}
    trusting = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    authority.cert_pem.write_to_path(folder / "clients.pem")
    for title in ("Listeners", "Clients without a valid certificate", "Certificates in the configuration", "Several certificates", "Certificates made by your own CA"):
        assert hello(page.start(title, {}, variables), trusting) == (200, b"hello"), title
    running = page.start("An identity from SPIFFE", {}, {})
    assert hello(running, client(folder, own, "shop")) == (200, b"hello")
    assert hello(running, client(folder, own, "other"))[0] == 403
    places = {"site.internal:443": f"localhost:{tls_upstream(authority, 'localhost')}", "shop.internal:443": f"127.0.0.1:{backend(folder, own, 'shop')}"}
    running = page.start("Backends", places, {})
    assert running.fetch(f"{running.url}/public")[0] == 200
    assert running.fetch(f"{running.url}/workload") == (200, "spiffe://td.test/gateway")
    assert len(TLS_BLOCKS) == 7, "each has its case"
