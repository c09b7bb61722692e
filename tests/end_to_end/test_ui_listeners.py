"""The admin page behind gateway listeners, in a browser and with hostile requests."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.end_to_end.admin_page_attacks_rig import Evil
from tests.end_to_end.asking import indented
from tests.end_to_end.browser import Browser, Page
from tests.end_to_end.fake_provider import FakeProvider
from tests.end_to_end.oidc_rig import ENVIRONMENT, OIDC
from tests.end_to_end.oidc_rig import Browser as Client
from tests.end_to_end.page_rig import ask_admin, gateway_of
from tests.end_to_end.processes import kill
from tests.end_to_end.running import Gateway
from tests.end_to_end.tls_rig import issue

from headgate.admin.mount import READ_ONLY

CONFIG = """
gateways:
  main:
    port: {port}
    listeners:
    - {name: basic, hostname: basic.test, basicAuth: {htpasswd: "ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="}}
    - {name: keyed, hostname: keyed.test, apiKey: {keys: [{key: sesame}], location: {cookie: {name: key}}}}
    - {name: named, hostname: named.test}
    - {name: any}
ui:
  gateways: main
  policies: {cors: {allowOrigins: ["http://friend.test:*"], allowMethods: [GET, POST], allowHeaders: [content-type]}}
llm:
  gateways: main/any
  models:
  - {name: sample, provider: openai, params: {baseUrl: "http://127.0.0.1:LLM/v1", apiKey: never-shown-2}}
routes:
- {name: mine, gateways: main/named, matches: [{path: {pathPrefix: /ui/mine}}, {path: {exact: /api/config}}], policies: {directResponse: {status: 200, body: mine}}}
- {name: rest, gateways: main/named, policies: {directResponse: {status: 200, body: rest}}}
"""
ADA = "Basic " + base64.b64encode(b"ada:password").decode()
HOSTS = ", ".join(f"MAP {name}.test 127.0.0.1" for name in ("basic", "keyed", "named", "friend", "evil"))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_of(tmp_path_factory.mktemp("gateway"), CONFIG, 2) as found:
        yield found


def ask(
    running: Gateway, path: str, host: str = "basic.test", method: str = "GET", body: bytes | None = None, **fields: str
) -> tuple[int, dict[str, str], bytes]:
    """One request to the listener of a host, with its credential."""
    headers = {"host": host, **{name.replace("_", "-"): value for name, value in fields.items()}}
    headers |= {"basic.test": {"authorization": ADA}, "keyed.test": {"cookie": "key=sesame"}}.get(host, {})
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("content-length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return found


def offers(running: Gateway, host: str) -> list[str]:
    found: list[str] = json.loads(ask(running, "/ui/api/state", host)[2])["offers"]
    return found


def raw(running: Gateway, path: str, host: str, fields: str = "") -> int:
    with socket.create_connection(("127.0.0.1", running.port), 20) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{fields}\r\n".encode())
        return int(sock.makefile("rb").readline().split()[1])


# -- what is there -----------------------------------------------------------------------------------------------------
def test_nobody_gets_by_without_a_credential(running: Gateway) -> None:
    for path in ("/", "/ui", "/ui/api/state", "/ui/assets/app.js", "/api/runtime", "/api/config", "/api/logs/search"):
        assert raw(running, path, "basic.test") == 401, path
        assert raw(running, path, "keyed.test") == 401, path
        assert raw(running, path, "keyed.test", "cookie: key=wrong\r\n") == 401, path


@pytest.mark.parametrize("host", ["basic.test", "keyed.test", "named.test", "127.0.0.1"])
def test_the_page_and_its_endpoints_are_there(running: Gateway, host: str) -> None:
    status, fields, _ = ask(running, "/", host)
    assert (status, fields["location"]) == (308, "/ui")
    for path in ("/ui", "/ui/", "/ui/traffic", "/ui/llm/models"):
        status, fields, body = ask(running, path, host)
        assert (status, fields["content-type"]) == (200, "text/html; charset=utf-8"), path
        assert b"<title>Headgate</title>" in body
        assert "frame-ancestors 'none'" in fields["content-security-policy"]
    assert ask(running, "/ui/assets/none.js", host)[0] == 404
    assert json.loads(ask(running, "/api/runtime", host)[2])["ui"]["gatewayMode"] == "standalone"


@pytest.mark.parametrize(("host", "status"), [("basic.test", 200), ("keyed.test", 200), ("named.test", 403), ("127.0.0.1", 403)])
def test_expressions_are_evaluated_behind_a_login_only(running: Gateway, host: str, status: int) -> None:
    found, _, body = ask(running, "/api/cel", host, "POST", b'{"expression": "1 + 1"}', content_type="application/json")
    assert found == status
    assert json.loads(body) == ({"result": 2, "error": None} if status == 200 else READ_ONLY)


def test_what_is_offered_depends_on_the_way(running: Gateway) -> None:
    assert offers(running, "basic.test") == offers(running, "keyed.test") == ["expressions", "relay", "store"]
    assert offers(running, "named.test") == offers(running, "localhost") == []
    assert json.loads(ask_admin(running, "GET", "/api/state")[2])["offers"] == ["dump", "expressions", "keys", "logging", "relay", "store", "trace"]
    order = json.dumps({"bind": f"bind/{running.port}", "path": "/none", "host": "localhost"}).encode()
    kind = {"content_type": "application/json"}
    assert ask(running, "/ui/api/relay", "basic.test", "POST", order, **kind)[0] == 200
    assert ask(running, "/ui/api/relay", "named.test", "POST", order, **kind)[0] == 403
    for method, path in (("POST", "/api/config"), ("PUT", "/api/config/resources/llm.model"), ("POST", "/api/logs/search")):
        status, _, body = ask(running, path, "keyed.test", method, b"[]", **kind)  # nothing that could be written
        assert status != 403, "there is a login"
        status, _, body = ask(running, path, "127.0.0.1", method, b"{}", **kind)
        assert status in (403, 404)
        assert status == 404 or "without a login" in json.loads(body)


def test_who_has_a_login_can_write_the_configuration(running: Gateway) -> None:
    before = running.path.read_text()
    _, fields, document = ask(running, "/api/config", "keyed.test")
    kind = {"content_type": "application/json", "if_match": fields["etag"]}
    assert ask(running, "/api/config", "named.test", "POST", document, **kind)[0] in (200, 403)     # a route of the user's
    assert ask(running, "/api/config", "127.0.0.1", "POST", document, **kind)[0] == 403
    assert running.path.read_text() == before
    foreign = {**kind, "origin": "http://evil.test"}
    assert ask(running, "/api/config", "keyed.test", "POST", document, **foreign)[0] == 403
    assert running.path.read_text() == before
    status, _, body = ask(running, "/api/config", "keyed.test", "POST", document, **kind)
    assert (status, json.loads(body)["status"]) == (200, "success")
    assert running.path.read_text() != before
    running.put(before)
    assert ask(running, "/api/config", "keyed.test")[0] == 200


def test_routes_of_the_user_win_where_they_say_more(running: Gateway) -> None:
    assert ask(running, "/ui/mine/x", "named.test")[2] == b"mine"
    assert ask(running, "/api/config", "named.test")[2] == b"mine"
    assert json.loads(ask(running, "/api/config", "keyed.test")[2])["gateways"]["main"]["port"] == running.port
    for path in ("/uix", "/api/configuration", "/config_dump", "/metrics", "/cel", "/api/state", "/api/relay", "/api"):
        assert ask(running, path, "named.test")[2] == b"rest", path


# -- attacks -----------------------------------------------------------------------------------------------------------
HIDDEN = ("quitquitquit", "logging?level=off", "logging", "config_dump", "memory", "debug/pprof/profile", "debug/tasks",
          "debug/pprof/heap?rate=4096", "debug/trace", "api/state", "api/relay", "cel")  # fmt: skip
TRICKS = (
    "/{}", "//{}", "/ui/../{}", "/ui/%2e%2e/{}", "/ui/%2E./{}", "/ui/..%2f{}", "/ui/..;/{}", "/ui/.//../{}", "/ui/\\..\\{}",
    "/ui/assets/../../{}", "/api/config/../../{}", "/api/runtime/%2e%2e/%2e%2e/{}", "/ui?/../{}", "/ui/api/../../{}",
    "/ui/api/state/../../../{}", "http://localhost/{}", "http://localhost/ui/../{}",
)  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS)
def test_nothing_else_of_the_admin_server_is_there(running: Gateway, trick: str) -> None:
    for name in HIDDEN:
        for method in ("GET", "POST", "PUT"):
            _, fields, body = ask(running, trick.format(name), "basic.test", method, content_type="application/json")
            told = fields.get("content-type", "").partition(";")[0]
            assert told in ("", "text/html", "text/plain", "application/json"), (trick, name)
            for secret in (b"shutdown", b"current log level", b"binds", b"rss", b"workload", b": ready"):
                assert secret not in body, (trick, name, method)
    assert running.process.poll() is None
    assert ask_admin(running, "GET", "/logging")[2] == b"current log level is info\n"
    assert json.loads(ask_admin(running, "GET", "/memory")[2])["pprof"] is None


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 200),
        ({"origin": "http://basic.test"}, 200),
        ({"origin": "https://basic.test", "sec_fetch_site": "same-origin"}, 200),
        ({"origin": "http://friend.test:81"}, 200),
        ({"origin": "http://friend.test:81", "sec_fetch_site": "cross-site"}, 200),
        ({"origin": "http://evil.test"}, 403),
        ({"origin": "http://basic.test:81"}, 403),
        ({"origin": "http://friend.test.evil.test:81"}, 403),
        ({"origin": "http://basic.test", "sec_fetch_site": "same-site"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
    ],
)
def test_requests_of_other_sites_are_refused(running: Gateway, fields: dict[str, str], status: int) -> None:
    body = b'{"expression": "1"}'
    assert ask(running, "/api/cel", "basic.test", "POST", body, content_type="application/json", **fields)[0] == status
    assert ask(running, "/api/cel", "basic.test", "POST", body, content_type="text/plain", **fields)[0] == (status if status == 403 else 415)


def test_a_link_elsewhere_leads_to_the_page_but_not_to_its_data(running: Gateway) -> None:
    come = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert ask(running, "/ui/traffic", "keyed.test", **come)[0] == 200
    assert ask(running, "/ui/api/state", "keyed.test", **come)[0] == 403
    assert ask(running, "/api/config", "keyed.test", **come)[0] == 403
    assert ask(running, "/ui/traffic", "keyed.test", sec_fetch_site="cross-site", sec_fetch_mode="no-cors")[0] == 403


@pytest.mark.parametrize("host", ["evil.test", "localhost.evil.test", "127.0.0.1.nip.test", "evil.test:80"])
def test_a_rebound_name_sees_nothing_without_a_login(running: Gateway, host: str) -> None:
    for path in ("/ui", "/api/config", "/ui/api/state"):
        status, _, body = ask(running, path, host)
        assert (status, b"give the listener a hostname" in body) == (421, True)


def test_fields_cannot_pretend_to_be_another_way(running: Gateway) -> None:
    fields = {"x-forwarded-host": "localhost", "forwarded": "host=localhost", "x-original-url": "/quitquitquit"}
    assert ask(running, "/ui", "evil.test", **{name.replace("-", "_"): value for name, value in fields.items()})[0] == 421
    assert running.process.poll() is None


# -- in a browser ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("browser") / "profile"
    folder.mkdir()
    found = Browser(folder, HOSTS)
    yield found
    found.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    found = browser.page()
    yield found
    found.close()


@pytest.fixture(scope="module")
def site() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def enter(page: Page, running: Gateway, host: str, path: str = "/ui") -> None:
    """Log in and open the page."""
    if host == "basic.test":
        page.go(f"http://ada:password@{host}:{running.port}/ui")
    if host == "keyed.test":
        page.cookie("key", "sesame", f"http://{host}:{running.port}/")
    page.go(f"http://{host}:{running.port}{path}")
    page.wait("document.querySelector('#connection').dataset.state === 'live'")


def problems(page: Page) -> list[str]:
    """What goes wrong in the page; that plain HTTP is no place for some of its fields is meant."""
    return [text for text in page.problems() if "Cross-Origin-Opener-Policy" not in text]


def links(page: Page) -> set[str]:
    found: list[str] = page.js("[...document.querySelectorAll('nav a')].filter((one) => one.offsetParent).map((one) => one.textContent)")
    return set(found)


@pytest.mark.browser
@pytest.mark.parametrize("host", ["basic.test", "keyed.test"])
def test_the_page_works_behind_a_login(page: Page, running: Gateway, host: str) -> None:
    enter(page, running, host)
    page.wait_text("Overview", "h1")
    seen = {"Overview", "Traffic", "Endpoints", "Requests", "Analytics", "Models", "Playground", "MCP", "Configuration", "Edit configuration"}
    assert links(page) == {*seen, "Expressions"}
    page.click("Traffic", "nav a")
    page.wait_text("internal/ui")
    page.click("Configuration", "nav a")
    page.wait_text("gateways")
    shown = page.js("fetch('/api/config').then((one) => one.text())")
    assert "openai" in shown
    assert "never-shown" not in shown
    page.click("Expressions", "nav a")
    page.click("Evaluate")
    page.wait_text("true")
    page.click("Playground", "nav a")
    page.fill("Message", "How many shoes?")
    page.click("Send")
    page.wait("document.querySelector('.turn.assistant div')?.textContent.length > 5")
    page.go(f"http://{host}:{running.port}/ui/trace")
    page.wait_text("Overview", "h1")
    assert problems(page) == []


@pytest.mark.browser
def test_the_page_works_without_a_login_and_offers_less(page: Page, running: Gateway) -> None:
    enter(page, running, "named.test", "/ui/mcp")
    page.wait_text("No MCP message")
    assert links(page) == {"Overview", "Traffic", "Endpoints", "Models", "MCP", "Configuration"}
    assert not page.js("[...document.querySelectorAll('h2')].some((one) => one.offsetParent && one.textContent === 'Tools')")
    assert problems(page) == []


@pytest.mark.browser
def test_another_site_uses_the_login_for_nothing(page: Page, running: Gateway, site: int) -> None:
    for host in ("basic.test", "keyed.test"):
        enter(page, running, host)
        page.go(f"http://evil.test:{site}/")
        place = f"http://{host}:{running.port}"
        order = json.dumps(json.dumps({"bind": f"bind/{running.port}", "path": "/stolen"}))
        for kind in ("text/plain", "application/json"):
            text = f"fetch('{place}/ui/api/relay', {{method: 'POST', credentials: 'include', headers: {{'content-type': '{kind}'}}, body: {order}}})"
            assert page.js(f"{text}.then((one) => one.status, (error) => error.name)") == "TypeError"
        assert page.js(f"fetch('{place}/api/config', {{credentials: 'include'}}).then((one) => one.text(), (error) => error.name)") == "TypeError"
        page.js(
            "(() => { const form = document.createElement('form'), field = document.createElement('input');"
            f" form.method = 'post'; form.enctype = 'text/plain'; form.action = '{place}/ui/api/relay';"
            f" field.name = '{{\"bind\": \"bind/{running.port}\", \"path\": \"/stolen\", \"x'; field.value = '\": 1}}'; form.append(field);"
            " document.body.append(form); form.submit(); })()"
        )
        page.wait(f"location.href.startsWith('{place}') && document.readyState === 'complete'")
    assert "http.path=/stolen" not in running.log()


@pytest.mark.browser
def test_a_rebound_name_sees_nothing_in_a_browser(page: Page, running: Gateway) -> None:
    page.go(f"http://evil.test:{running.port}/ui")
    page.wait("document.body.innerText.includes('localhost and addresses only')")
    assert page.js("fetch('/api/config').then((one) => one.status)") == 421


@pytest.mark.browser
def test_cors_of_the_section_lets_a_friend_read(page: Page, running: Gateway, site: int) -> None:
    text = f"fetch('http://named.test:{running.port}/api/runtime').then((one) => one.status, (error) => error.name)"
    page.go(f"http://friend.test:{site}/")
    assert page.js(text) == 200
    page.go(f"http://evil.test:{site}/")
    assert page.js(text) == "TypeError"


# -- the life of it ----------------------------------------------------------------------------------------------------
PLAIN = """
gateways: {default: {port: {port}}}
routes: [{name: r, policies: {directResponse: {status: 200, body: mine}}}]
"""


def wait_for(running: Gateway, status: int) -> None:
    deadline = time.monotonic() + 40
    while raw(running, "/ui/none.js", "localhost") != status:
        assert time.monotonic() < deadline, running.log()
        time.sleep(0.02)


def test_it_comes_and_goes_with_the_configuration(gateway: Callable[..., Gateway]) -> None:
    running = gateway(PLAIN, workers=1)
    running.wait_log(f"url=http://127.0.0.1:{running.admin}/ui")
    assert "admin page" in running.log()
    assert ask(running, "/ui", "localhost")[2] == b"mine"
    running.write(PLAIN + "ui: {}\n")
    wait_for(running, 404)
    # A worker that takes another's place reaches it as well.
    kill(running.worker_pids()[0])
    running.wait_log("worker restarted")
    assert json.loads(ask(running, "/ui/api/state", "localhost")[2])["generation"] == 2
    running.write(PLAIN)
    wait_for(running, 200)
    assert ask(running, "/ui", "localhost")[2] == b"mine"


def test_the_log_says_where_it_is(gateway: Callable[..., Gateway]) -> None:
    running = gateway("gateways: {default: {port: {port}}}\nui: {}\n")
    running.wait_log(f"url=http://localhost:{running.port}/ui")


def test_what_the_workers_use_is_for_this_user_only(gateway: Callable[..., Gateway]) -> None:
    running = gateway("gateways: {default: {port: {port}}}\nui: {}\n")
    ask(running, "/ui", "localhost")
    running.wait_log("endpoint=unix:")
    path = Path(running.log().partition("endpoint=unix:")[2].split()[0])
    assert path.is_socket()
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    running.stop()
    assert not path.parent.exists()


def test_csrf_and_authorization_of_the_section_hold(gateway: Callable[..., Gateway]) -> None:
    policies = "csrf: {additionalOrigins: ['http://other.test']}\nauthorization: {rules: ['request.headers[\"x-team\"] == \"red\"']}\n"
    policies += "apiKey: {keys: [{key: sesame}], location: {cookie: {name: key}}}\n"
    running = gateway("gateways: {default: {port: {port}}}\nui:\n  policies:\n" + indented(policies))
    kind = {"content_type": "application/json", "x_team": "red", "cookie": "key=sesame"}
    body = b'{"expression": "1"}'
    assert ask(running, "/api/runtime", "localhost", cookie="key=sesame")[0] == 403
    assert ask(running, "/api/runtime", "localhost", x_team="red", cookie="key=sesame")[0] == 200
    assert ask(running, "/api/cel", "localhost", "POST", body, origin="http://localhost", **kind)[0] == 200
    answer = ask(running, "/api/cel", "localhost", "POST", body, origin="http://evil.test", **kind)
    assert answer[0] == 403
    assert b"admin server" not in answer[2], "the policy refuses it first"


def test_a_browser_login_leads_to_the_page(gateway: Callable[..., Gateway]) -> None:
    provider = FakeProvider()
    try:
        policy = OIDC % provider.issuer
        running = gateway(
            "gateways: {default: {port: {port}}}\nui:\n  policies:\n" + indented(policy), 1, ENVIRONMENT
        )
        with Client() as browser:
            done = browser.log_in(running, provider, "/ui/traffic")
            assert (done.status_code, done.headers["location"]) == (302, "/ui/traffic")
            assert "<title>Headgate</title>" in browser.get(f"{running.url}/ui/traffic").text
            found: dict[str, Any] = browser.get(f"{running.url}/ui/api/state").json()
            assert found["offers"] == ["expressions", "relay", "store"]
    finally:
        provider.close()


def test_behind_tls_the_page_s_own_requests_are_its_own(gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issue(authority, tmp_path, "a", "admin.test")
    running = gateway(
        f"gateways: {{default: {{port: {{port}}, tls: {{cert: {tmp_path}/a.pem, key: {tmp_path}/a.key}}}}}}\n"
        "ui: {policies: {apiKey: {keys: [{key: sesame}], location: {cookie: {name: key}}}}}\n"
    )
    running.wait_log(f"url=https://localhost:{running.port}/ui")
    place = f"https://admin.test:{running.port}"

    def curl(path: str, *more: str) -> str:
        words = ["curl", "-s", "-b", "key=sesame", "-w", "\n%{http_code}", "--cacert", f"{tmp_path}/ca.pem"]
        words += ["--resolve", f"admin.test:{running.port}:127.0.0.1", *more, place + path]
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout

    assert "<title>Headgate</title>" in curl("/ui")
    cel = ("-H", "content-type: application/json", "-d", '{"expression": "1 + 1"}')
    own = ("-H", f"origin: {place}", "-H", "sec-fetch-site: same-origin")
    assert curl("/api/cel", *cel, *own) == '{"result":2,"error":null}\n200'
    plain = ("-H", f"origin: http://admin.test:{running.port}", "-H", "sec-fetch-site: cross-site")
    assert curl("/api/cel", *cel, *plain).endswith("\n403")
