"""Pages in the operator's browser, and what they may send to the operator's ports (CWE-346, CWE-350, CWE-352; see README.md)."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable

import pytest
from tests.attack.recording_rig import PATIENCE
from tests.end_to_end.running import Gateway

CONFIG = """
gateways: {default: {port: {port}}}
routes:
- {name: web, policies: {directResponse: {status: 200, body: ok}}}
"""
ALLOWED = "http://localhost:5173"
SETTINGS = f"adminAllowedOrigins: ['{ALLOWED}', 'https://OPS.test:443']\ndatabase: {{url: 'sqlite://data.db'}}"
JSON = {"content-type": "application/json"}
READ = ("/config_dump", "/api/state", "/api/config", "/api/config/text", "/logging", "/memory", "/debug/tasks", "/debug/trace", "/ui/assets/app.js", "/metrics")
WRITE = (
    ("POST", "/logging?level=off", b""), ("POST", "/quitquitquit", b""), ("POST", "/debug/pprof/heap?rate=4096", b""), ("POST", "/debug/trace", b""),
    ("POST", "/api/config", b"{}"), ("POST", "/api/config/text", b'{"text": ""}'), ("POST", "/api/relay", b'{"bind": "bind/1"}'), ("POST", "/api/cel", b"{}"),
)  # fmt: skip
# What a browser sends for a page elsewhere: by fetch, by forms, by images, on other ports of this machine, from files and frames.
PAGES = {
    "another site": {"origin": "http://evil.test", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
    "another port of this machine": {"origin": "http://localhost:8000", "sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    "the same address, another port": {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-site"},
    "a development server that nobody allowed": {"origin": "http://localhost:3000", "sec-fetch-site": "same-site"},
    "another one": {"origin": "http://127.0.0.1:19000", "sec-fetch-site": "same-site"},
    "the gateway's own port": {"origin": "http://127.0.0.1:TRAFFIC", "sec-fetch-site": "same-site"},
    "the stats port": {"origin": "http://127.0.0.1:STATS", "sec-fetch-site": "same-site"},
    "an old browser": {"origin": "http://localhost:8000"},
    "a form or an image, no origin": {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
    "a frame or a file": {"origin": "null"},
    "the allowed name with TLS": {"origin": "https://localhost:5173", "sec-fetch-site": "cross-site"},
    "the allowed port by address": {"origin": "http://127.0.0.1:5173", "sec-fetch-site": "same-site"},
    "what begins like the allowed one": {"origin": "http://localhost:51730", "sec-fetch-site": "same-site"},
    "what ends like it": {"origin": "http://evil.localhost:5173", "sec-fetch-site": "cross-site"},
    "two origins": {"origin": f"{ALLOWED}, http://evil.test"},
}  # fmt: skip
# Names that a foreign name server points at this machine.
REBOUND = ("evil.test", "evil.test:PORT", "localhost.evil.test", "127.0.0.1.evil.test:PORT", "localhost.:PORT.evil.test", "2130706433.evil.test")


@pytest.fixture(scope="module")
def running(serving: Callable[..., Gateway]) -> Gateway:
    return serving(CONFIG, settings=SETTINGS)


def ask(port: int, method: str, path: str, fields: dict[str, str], body: bytes | None = None) -> tuple[int, dict[str, str], bytes]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    client.request(method, path, body, fields)
    answer = client.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read(512) if method != "HEAD" else b""
    client.close()
    return found


def spelled(running: Gateway, fields: dict[str, str], port: int) -> dict[str, str]:
    places = {"TRAFFIC": running.port, "STATS": running.stats, "PORT": port}
    for name, number in places.items():
        fields = {key: value.replace(name, str(number)) for key, value in fields.items()}
    return fields


def unharmed(running: Gateway, before: bytes) -> None:
    assert ask(running.admin, "GET", "/logging", {})[2].startswith(b"current log level is info")
    assert running.path.read_bytes() == before
    assert running.fetch(running.url) == (200, "ok")
    assert running.process.poll() is None


def test_foreign_pages_read_and_write_nothing(running: Gateway) -> None:
    before = running.path.read_bytes()
    for name, page in PAGES.items():
        for port in (running.admin, running.stats):
            fields = spelled(running, page, port)
            if fields.get("origin") == f"http://127.0.0.1:{port}":
                continue       # a page of the server itself
            for path in READ:
                for method in ("GET", "HEAD"):
                    status, told, _ = ask(port, method, path, fields)
                    assert status == 403, (name, method, path, status)
                    assert not [one for one in told if one.startswith("access-control")], (name, path)
            for method, path, body in WRITE:
                for kind in (JSON, {"content-type": "text/plain"}, {}):
                    assert ask(port, method, path, {**fields, **kind}, body)[0] == 403, (name, method, path, kind)
                asking = {**fields, "access-control-request-method": method, "access-control-request-headers": "content-type",
                          "access-control-request-private-network": "true"}  # fmt: skip
                status, told, _ = ask(port, "OPTIONS", path, asking)
                assert status == 403, (name, path)
                assert not [one for one in told if one.startswith("access-control")], (name, path)
    unharmed(running, before)


def test_names_that_lead_here_from_elsewhere_are_no_way_in(running: Gateway) -> None:
    """DNS rebinding: the page and its requests have one origin, which the name server has moved here."""
    before = running.path.read_bytes()
    for name in REBOUND:
        for port in (running.admin, running.stats):
            host = name.replace("PORT", str(port))
            for page in ({"host": host}, {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}):
                for method, path, body in (*(("GET", path, b"") for path in READ), *WRITE):
                    status, told, _ = ask(port, method, path, {**page, **JSON}, body)
                    assert status == 421, (host, method, path, status)
                    assert "access-control-allow-origin" not in told
    unharmed(running, before)


def test_pages_of_allowed_origins_read_and_do_not_write(running: Gateway) -> None:
    before = running.path.read_bytes()
    for origin in (ALLOWED, "https://ops.test"):
        page = {"origin": origin, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
        for port, path in ((running.admin, "/config_dump"), (running.admin, "/api/state"), (running.stats, "/metrics")):
            status, told, _ = ask(port, "GET", path, page)
            assert (status, told["access-control-allow-origin"], told["vary"]) == (200, origin, "origin")
        for method, path, body in WRITE:
            if path.startswith("/api/"):
                assert ask(running.admin, method, path, {**page, **JSON}, body)[0] == 403, path
    dump = json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")[1])
    assert dump["config"]["adminAllowedOrigins"] == [ALLOWED, "https://ops.test"]
    unharmed(running, before)


def test_programs_are_no_pages(running: Gateway) -> None:
    for port, path in ((running.admin, "/config_dump"), (running.stats, "/metrics")):
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "LOCALHOST"):
            assert ask(port, "GET", path, {"host": host})[0] == 200, host
    own = {"origin": f"http://127.0.0.1:{running.admin}", "sec-fetch-site": "same-origin", "host": f"127.0.0.1:{running.admin}"}
    assert ask(running.admin, "GET", "/api/state", own)[0] == 200


DEEP = (b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000, b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
BODIES = ("/api/config", "/api/config/text", "/api/config/check", "/api/relay", "/api/cel", "/cel", "/api/logs/search", "/api/logs/get", "/api/analytics/summary")


def test_deep_bodies_are_refused_at_the_operator_s_port(running: Gateway) -> None:
    """CWE-674: 100,000 brackets are 400, whatever is meant to be in the body; the supervisor goes on."""
    before = running.path.read_bytes()
    wrong = {}
    for path in BODIES:
        for body in DEEP:
            status, _, told = ask(running.admin, "POST", path, JSON, body)
            if status not in (400, 404, 405):
                wrong[path, body[:12]] = (status, told[:80])
    assert not wrong, wrong
    assert "Traceback" not in running.log()
    unharmed(running, before)
