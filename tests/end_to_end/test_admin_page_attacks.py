"""A page of another site, in a browser on the operator's machine, tries to get at the gateway."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

import pytest
from tests.end_to_end.admin_page_attacks_rig import Evil
from tests.end_to_end.browser import Browser, Page
from tests.end_to_end.page_rig import ask_admin, gateway_of
from tests.end_to_end.running import Gateway
from tests.end_to_end.tracing import wait_for

pytestmark = pytest.mark.browser
CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: costly
  policies: {directResponse: {status: 200, body: paid}}
"""




@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("browser") / "profile"
    folder.mkdir()
    found = Browser(folder, "MAP evil.example 127.0.0.1")
    yield found
    found.close()


@pytest.fixture(scope="module")
def running(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_of(tmp_path_factory.mktemp("gateway"), CONFIG, 1) as found:
        yield found


@pytest.fixture(scope="module")
def site() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["evil.example", "localhost"])
def evil(browser: Browser, site: int, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of another site; `localhost` is even the same machine, but another port."""
    page = browser.page()
    page.go(f"http://{request.param}:{site}/")
    yield page
    page.close()


def attempt(page: Page, running: Gateway, text: str) -> str:
    """What comes of a promise: its value as text, or the name of its error."""
    text = text.replace("ADMIN", f"http://127.0.0.1:{running.admin}")
    return page.js(f"Promise.resolve().then(() => {text}).then(String, (error) => error.name)")


def unharmed(running: Gateway) -> None:
    assert ask_admin(running, "GET", "/logging")[2] == b"current log level is info\n"
    assert running.metric("gw_requests_total") == 0, "a request was made"
    assert running.process.poll() is None


ORDER = json.dumps(json.dumps({"bind": "bind/PORT"}))
PREFLIGHTED = "{method: 'POST', headers: {'content-type': 'application/json'}, body: BODY}"


@pytest.mark.parametrize("path", ["/config_dump", "/api/state", "/api/config", "/metrics", "/ui", "/debug/tasks"])
def test_nothing_can_be_read(evil: Page, running: Gateway, path: str) -> None:
    assert attempt(evil, running, f"fetch('ADMIN{path}').then((one) => one.text())") == "TypeError"
    assert attempt(evil, running, f"fetch('ADMIN{path}', {{mode: 'no-cors'}}).then((one) => one.type + one.status)") in ("opaque0", "TypeError")


def test_nothing_can_be_changed(evil: Page, running: Gateway) -> None:
    body = ORDER.replace("PORT", str(running.port))
    for path in ("/logging?level=off", "/quitquitquit", "/debug/pprof/heap?rate=4096"):
        attempt(evil, running, f"fetch('ADMIN{path}', {{method: 'POST', mode: 'no-cors'}})")
        attempt(evil, running, f"navigator.sendBeacon('ADMIN{path}')")
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        attempt(evil, running, f"fetch('ADMIN/api/relay', {{method: 'POST', mode: 'no-cors', headers: {{'content-type': '{kind}'}}, body: {body}}})")
    found = attempt(evil, running, f"fetch('ADMIN/api/relay', {PREFLIGHTED.replace('BODY', body)})")
    assert found == "TypeError"
    attempt(evil, running, f"navigator.sendBeacon('ADMIN/api/relay', new Blob([{body}], {{type: 'application/json'}}))")
    unharmed(running)


def test_forms_images_and_scripts_do_nothing(evil: Page, running: Gateway) -> None:
    admin = f"http://127.0.0.1:{running.admin}"
    for tag, key, path in (("script", "src", "/api/state"), ("img", "src", "/quitquitquit"), ("link", "href", "/ui/assets/parts.css")):
        outcome = evil.js(
            f"new Promise((done) => {{ const one = document.createElement('{tag}'); one.rel = 'stylesheet';"
            f" one.onload = () => done('loaded'); one.onerror = () => done('refused'); one.{key} = '{admin}{path}'; document.body.append(one); }})"
        )
        assert outcome == "refused", path
    evil.js(
        "(() => { const form = document.createElement('form'), field = document.createElement('input');"
        f" form.method = 'post'; form.enctype = 'text/plain'; form.action = '{admin}/api/relay';"
        f" field.name = '{{\"bind\": \"bind/{running.port}\", \"x'; field.value = '\": 1}}'; form.append(field); document.body.append(form); form.submit(); }})()"
    )
    evil.wait("document.body.innerText.includes('does not serve pages of other sites')")
    unharmed(running)


def test_the_page_is_not_framed(evil: Page, running: Gateway) -> None:
    evil.js(
        f"new Promise((done) => {{ const one = document.createElement('iframe'); one.onload = done; one.src = 'http://127.0.0.1:{running.admin}/ui';"
        " document.body.append(one); })"
    )
    wait_for(lambda: any("frame" in text.lower() for text in evil.problems()))


def test_a_rebound_name_sees_nothing(browser: Browser, running: Gateway) -> None:
    page = browser.page()
    page.go(f"http://evil.example:{running.admin}/ui")
    page.wait("document.body.innerText.includes('localhost and addresses only')")
    assert attempt(page, running, "fetch('/config_dump').then((one) => one.status)") == "421"
    body = ORDER.replace("PORT", str(running.port))
    assert attempt(page, running, f"fetch('/api/relay', {PREFLIGHTED.replace('BODY', body)}).then((one) => one.status)") == "421"
    unharmed(running)
    page.close()


def test_a_link_elsewhere_still_leads_to_the_page(evil: Page, running: Gateway) -> None:
    evil.js(f"(() => {{ const one = document.createElement('a'); one.href = 'http://127.0.0.1:{running.admin}/ui/traffic'; document.body.append(one); one.click(); }})()")
    evil.wait("document.querySelector('h1').textContent === 'Traffic'")
