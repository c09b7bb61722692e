"""A gateway with something of everything, and traffic, for the tests of the admin page."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import forked_rig
from tests.end_to_end.browser import Browser, Page
from tests.end_to_end.running import Gateway, Pool
from tests.end_to_end.tracing import wait_for

# The tests write the pictures of the docs.
PAINTING = os.environ.get("HEADGATE_PICTURES") == "1"
PICTURES = Path(__file__).resolve().parents[2] / "docs/pictures"
# Widths in px in which every view has to fit: a telephone, a tablet, a laptop (of the pictures in the docs), a large screen.
WIDTHS = (390, 820, 1440, 2560)
# What sticks out of the window or of its card, and is not scrolled in a frame of its own.
STICKING_OUT = """
[...document.querySelectorAll('main *')].filter((one) => one.checkVisibility() && !one.closest('svg, pre, textarea, .scroll, .code, .visually-hidden, caption') &&
  one.getBoundingClientRect().right > (one.closest('.card')?.getBoundingClientRect().right ?? innerWidth) + 1).map((one) => `${one.tagName}.${one.className}: ${one.textContent.slice(0, 40)}`)
"""
EVIL = "<img src=x onerror=document.title='owned'>"
# Of a route; the pictures of the docs have a friendlier one.
NAME = "reviews" if PAINTING else EVIL
PYTHON = "python3" if PAINTING else sys.executable
PEERS = Path(__file__).resolve().parents[1] / "peers"
CONFIG = """
gateways:
  default: {port: {port}}
mcp:
  gateways: default
  targets:
  - name: sample
    stdio: {cmd: PYTHON, args: ["-m", "headgate.sample.mcp_server"], env: {SAMPLE_TOKEN: never-shown-1}}
llm:
  gateways: default
  models:
  - name: sample
    provider: openai
    params: {baseUrl: "http://127.0.0.1:LLM/v1", apiKey: never-shown-2}
  - name: "*"
    provider: openai
    params: {baseUrl: "http://127.0.0.1:LLM/v1", apiKey: never-shown-2}
services:
- {name: shop, namespace: prod, hostname: shop.prod.test, vips: [10.0.0.1], ports: {80: HTTP}}
workloads:
- {uid: shop-a, name: shop-a, namespace: prod, workloadIps: [127.0.0.1], services: {prod/shop.prod.test: {80: HTTP}}}
- {uid: shop-b, name: shop-b, namespace: prod, workloadIps: [127.0.0.2], services: {prod/shop.prod.test: {80: 1}}}
routes:
- name: shop
  matches: [{path: {pathPrefix: /shop}}]
  backends:
  - service: {name: prod/shop.prod.test, port: 80}
    policies: {health: {unhealthyExpression: "response.code >= 500", eviction: {duration: 30s}}}
- name: catalogue
  matches: [{path: {pathPrefix: /catalogue}}]
  policies:
    requestHeaderModifier: {set: {x-shop: headgate}}
    timeout: {requestTimeout: 5s}
  backends: [{host: "127.0.0.1:HTTP"}]
- name: broken
  matches: [{path: {pathPrefix: /broken}}]
  backends: [{host: "127.0.0.1:1"}]
- name: "EVIL"
  matches: [{path: {pathPrefix: /evil}}]
  backends: [{host: "127.0.0.1:HTTP"}]
- name: hostile
  matches: [{path: {pathPrefix: /hostile}}]
  backends:
  - mcp:
      targets:
      - name: hostile
        stdio: {cmd: PYTHON, args: ["PEERS/hostile_server.py"]}
- name: locked
  matches: [{path: {pathPrefix: /locked}}]
  policies: {directResponse: {status: 403, body: locked}}
"""


# A request log, and prices.
KEPT = """
database: {url: "sqlite://data.db"}
modelCatalog: [{inline: {providers: {openai: {models: {sample: {rates: {input: "250", output: "1000"}}}}}}}]
"""


@contextlib.contextmanager
def samples() -> Iterator[dict[str, int]]:
    """The sample services of the package, by name, with their ports."""
    running = [
        forked_rig.start(f"headgate.sample.{name}", (), subprocess.PIPE) for name in ("llm_provider", "http_service")
    ]
    try:
        yield {name: int(one.stdout.readline().split()[1]) for name, one in zip(("LLM", "HTTP"), running, strict=True)}  # type: ignore[union-attr]
    finally:
        for one in running:
            one.terminate()
            one.wait(60)


@contextlib.contextmanager
def gateway_of(folder: Path, text: str = CONFIG, workers: int = 2, settings: str = "") -> Iterator[Gateway]:
    """A running gateway with this configuration in front of the samples."""
    with samples() as ports:
        text = text.replace("PYTHON", PYTHON).replace("PEERS", str(PEERS)).replace("EVIL", NAME)
        for name, port in ports.items():
            text = text.replace(name, str(port))
        pool = Pool(lambda: Path(tempfile.mkdtemp(prefix="gateway", dir=folder)))
        found = pool.take(text, (workers, "{}", settings))
        try:
            yield found
        finally:
            found.stop()
            log = found.log()
            assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:4000]


def call(running: Gateway, path: str, body: Any = None, **fields: str) -> tuple[int, str]:
    """One request to the gateway's traffic port."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"} if body is not None else {}
    connection.request("GET" if body is None else "POST", path, data, {**headers, **fields})
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


def ask_admin(
    running: Gateway, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """One request to the admin server: status, fields by lower-case name, body."""
    connection = http.client.HTTPConnection("127.0.0.1", running.admin, timeout=60)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    fields = {name.lower(): value for name, value in answer.getheaders()}
    found = answer.status, fields, answer.read()
    connection.close()
    return found


def traffic(running: Gateway, times: int = 6) -> None:
    """Some of everything."""
    for number in range(times):
        for path in ("/catalogue/shoes", "/shop/cart", "/evil", "/locked"):
            call(running, path)
        if number % 3 == 0:
            call(running, "/broken")
        chat = {"model": "sample", "messages": [{"role": "user", "content": "How many shoes are left in the shop today?"}]}
        assert call(running, "/v1/chat/completions", chat)[0] == 200


def recorded(running: Gateway) -> None:
    """Wait until the request log has all that came."""
    total = running.metric("gw_requests_total")
    wait_for(lambda: running.metric('gw_request_log_records_total{outcome="written"}') >= total)


def keep(page: Page, name: str) -> None:
    """Assert that a view fits all widths. Its pictures for the docs are written when they are asked for."""
    for width in WIDTHS:
        page.size(width, 860)
        if PAINTING:
            page.whole(width)
            for theme in ("light", "dark"):
                # Without motion colours change at once.
                page.prefer(prefers_color_scheme=theme, prefers_reduced_motion="reduce")
                place = f"admin-{name}-{theme}.png" if width == 1440 else f"widths/admin-{name}-{width}-{theme}.png"
                page.picture(PICTURES / place)
        assert page.js("document.documentElement.scrollWidth") <= width, (name, width)
        assert (out := page.js(STICKING_OUT)) == [], (name, width, out)
    page.size(1280, 900)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("browser") / "profile"
    folder.mkdir()
    found = Browser(folder)
    yield found
    found.close()


@pytest.fixture(scope="module")
def running(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Gateway]:
    """A gateway that keeps a request log, after `ROUNDS` of traffic if the module says how many."""
    with gateway_of(tmp_path_factory.mktemp("gateway"), settings=KEPT) as found:
        traffic(found, getattr(request.module, "ROUNDS", 6))
        recorded(found)
        yield found


@pytest.fixture
def page(browser: Browser, running: Gateway) -> Iterator[Page]:
    found = browser.tab()
    yield found
    # Whatever a view shows, nothing fails in it, and no text of others was taken for markup.
    assert found.problems() == []
    assert found.js("document.title") != "owned"
    found.close()
