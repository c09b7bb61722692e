"""The page at /ui over time: the hour that the gateway keeps, ranges, crosshair, and groups of any attribute."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.end_to_end.browser import Page
from tests.end_to_end.page_rig import browser, page, recorded, running, traffic
from tests.end_to_end.running import Gateway

pytestmark = pytest.mark.browser
__all__ = ["browser", "page", "running"]
NOW = "[...document.querySelectorAll('.chart svg')].map((one) => one.getAttribute('aria-label'))"


def go(page: Page, running: Gateway, name: str) -> None:
    page.go(f"http://127.0.0.1:{running.admin}/ui/{name}".rstrip("/"))
    page.wait("document.querySelector('#connection').dataset.state === 'live'")


@contextlib.contextmanager
def endless(running: Gateway) -> Iterator[None]:
    """Traffic for as long as the body takes."""
    enough = threading.Event()

    def send() -> None:
        while not enough.is_set():
            traffic(running, 1)

    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(send)
        try:
            yield
        finally:
            enough.set()
        sending.result()


def history(running: Gateway, query: str = "") -> dict[str, Any]:
    return dict(json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/ui/api/history{query}")[1]))


def test_the_hour_before_the_page_was_opened_is_shown(page: Page, running: Gateway) -> None:
    def behind_traffic() -> bool:
        points = history(running)["points"]
        return len(points) > 1 and points[-1]["models"].get("openai sample", [0])[0] >= 6

    # Points may have been taken before or within the traffic of the fixture.
    running.wait(behind_traffic)
    told = history(running)
    first, second = told["points"][-2:]
    assert told["everySeconds"] == 15
    assert second["time"] - first["time"] >= 14_000
    assert second["requests"] >= first["requests"]
    assert second["routes"]["default/catalogue"][0] >= 6
    # Of 15 seconds with requests: p50 and p95.
    assert any(0 < (one["routes"].get("default/catalogue") or [0] * 5)[3] <= one["routes"]["default/catalogue"][4]
               for one in told["points"] if (one["routes"].get("default/catalogue") or [None] * 5)[3] is not None)
    assert [one["time"] for one in history(running, f"?since={first['time']}")["points"]][:1] == [second["time"]]
    page.go(f"http://127.0.0.1:{running.admin}/ui?range=hour")
    page.wait("document.querySelector('#connection').dataset.state === 'live'")
    page.wait("document.querySelector('[aria-pressed=true]').textContent === '1 hour'")
    # What came before this page was opened, of every kind.
    page.wait("document.querySelectorAll('.chart path.series').length === 7")
    page.click("15 min")
    page.wait("window.location.search === '?range=15m'")
    page.click("5 min")
    page.wait("window.location.search === ''")
    assert page.js("[...document.querySelectorAll('main a')].find((one) => one.textContent === 'Longer ranges').getAttribute('href')") == "/ui/analytics"


def test_a_chosen_route_has_latency_over_time(page: Page, running: Gateway) -> None:
    page.go(f"http://127.0.0.1:{running.admin}/ui/traffic?range=hour")
    page.wait_text("catalogue")
    page.click("catalogue")
    page.wait("document.querySelector('main h2').textContent === 'Route catalogue'")
    # Of two charts over time the second: p50 and p95 of the intervals with requests.
    page.wait("document.querySelectorAll('.chart')[1].querySelectorAll('path.series').length === 2")
    page.wait("[...document.querySelectorAll('.chart')[1].querySelectorAll('path.series')].every((one) => one.getAttribute('d').startsWith('M'))")


def test_latency_errors_tokens_and_money_are_drawn(page: Page, running: Gateway) -> None:
    go(page, running, "")
    # The newest value is that of a moment: there is traffic until both are drawn.
    with endless(running):
        page.wait(f"/Requests [0-9.]*[1-9][0-9.]*, 4xx [0-9.]+, 5xx [0-9.]+ now/.test({NOW}[0])")
        page.wait(f"/p50 .*s, p95 .*s now/.test({NOW}[1])")
    assert page.js("[...document.querySelectorAll('.card h2')].map((one) => one.textContent)")[:4] == [
        "Requests per second", "Latency", "Tokens per minute", "Cost per minute",
    ]  # fmt: skip


def test_the_crosshair_tells_time_and_values(page: Page, running: Gateway) -> None:
    go(page, running, "")
    traffic(running, 2)
    page.wait("document.querySelectorAll('.chart path.series').length === 7")
    ticks = page.js("[...document.querySelector('.chart').querySelectorAll('text')].map((one) => one.textContent)")
    assert any(re.fullmatch(r"\d\d:\d\d(:\d\d)?", one) for one in ticks), ticks
    move = "((one) => { const at = one.getBoundingClientRect(); one.dispatchEvent(new PointerEvent('pointermove', {clientX: at.right - 8, clientY: at.top + 40})); })"
    page.js(f"{move}(document.querySelector('.chart svg'))")
    shown = page.js("document.querySelector('.readout').innerText")
    assert re.match(r"\d\d:\d\d:\d\d\s+Requests [\d.]+\s+4xx [\d.]+\s+5xx [\d.]+", shown), shown
    assert page.js("document.querySelectorAll('.chart .cross').length") == 1
    page.js("document.querySelector('.chart svg').dispatchEvent(new PointerEvent('pointerleave'))")
    assert page.js("document.querySelector('.readout').hidden") is True
    # The same with the keyboard.
    page.js("document.querySelector('.chart svg').focus()")
    page.js("document.querySelector('.chart svg').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft'}))")
    assert page.js("document.querySelector('.readout').hidden") is False


def test_names_are_those_of_the_configuration(page: Page, running: Gateway) -> None:
    go(page, running, "traffic")
    page.wait_text("llm (section)")
    shown = page.js("document.querySelector('#view').innerText")
    assert "internal/" not in shown
    assert "llm:model:" not in shown
    assert "default/" not in shown
    assert "prod/shop.prod.test" in shown
    assert page.js("[...document.querySelectorAll('th button')].find((one) => one.textContent === 'sample').title").startswith("llm:model:sample")


def test_endpoints_have_their_addresses(page: Page, running: Gateway) -> None:
    go(page, running, "endpoints")
    page.wait_text("shop-a")
    rows = page.js("[...document.querySelectorAll('tbody tr')].map((row) => [...row.children].map((one) => one.textContent))")
    found = {row[0]: row[1] for row in rows}
    assert re.fullmatch(r"127\.0\.0\.1:\d+", found["shop-a"])
    assert found["shop-b"] == "127.0.0.2:1"


def test_requests_are_stacked_by_any_attribute_and_lead_to_the_log(page: Page, running: Gateway) -> None:
    recorded(running)
    go(page, running, "analytics?by=attributes.route")
    page.wait_text("catalogue")
    parts = page.js("[...document.querySelector('.figure').querySelectorAll('.legend li')].map((one) => one.textContent)")
    assert "catalogue" in parts
    assert "llm (section)" in parts
    assert page.js("new Set([...document.querySelector('.chart').querySelectorAll('rect.column')].map((one) => one.getAttribute('class'))).size") >= 3
    row = "[...document.querySelectorAll('tbody tr')].find((one) => one.textContent.startsWith('catalogue'))"
    assert re.search(r"[\d.]+ (µs|ms|s)$", page.js(f"{row}.textContent")), "the mean time"
    page.fill("Group by", "other")
    page.fill("Attribute", "http.status")
    page.wait("[...document.querySelectorAll('tbody th')].some((one) => one.textContent === '403')")
    assert page.js("window.location.search") == "?by=attributes.http.status"
    page.click("403", "th button")
    page.click("Show these requests", "a")
    page.wait("document.querySelector('h1').textContent === 'Requests'")
    page.wait("document.querySelector('tbody tr') && [...document.querySelectorAll('tbody tr')].every((row) => row.children[1].textContent === '403')")
    # An attribute of a request narrows the list further.
    page.js("document.querySelector('tbody th button').click()")
    page.wait("document.querySelector('dialog.drawer').innerText.includes('http.path')")
    page.js("document.querySelector('[aria-label=\"Only requests with this http.path\"]').click()")
    page.wait("window.location.search.includes('http.path') && !document.querySelector('dialog.drawer').open")
    page.wait("document.querySelector('tbody tr')?.textContent.includes('/locked')")


def test_a_row_that_was_not_among_the_busiest_has_no_sudden_rise(page: Page, running: Gateway) -> None:
    """A point without a route says nothing of it where there were more routes than the point has."""
    go(page, running, "")
    told = page.js("""(async () => {
      const { knowing, rates } = await import('/ui/assets/store.js');
      const point = (time, routes, cut) => ({ time, routes, cut });
      const read = (one) => (one.routes.b ?? [0])[0];
      const points = (cut) => [point(0, { a: [9, 0, 0] }, cut), point(1000, { a: [9, 0, 0], b: [500, 0, 0] }, []), point(2000, { b: [501, 0, 0] }, [])];
      return [['routes'], []].map((cut) => rates(knowing(points(cut), 'routes', 'b'), read).map((one) => one.value));
    })()""")
    assert told == [[1], [500, 1]]


def test_ticks_are_round_and_quantiles_are_those_between_points(page: Page, running: Gateway) -> None:
    go(page, running, "")
    told = page.js("""(async () => {
      const { ticks } = await import('/ui/assets/plot.js');
      const { routeName, backendName, listenerName } = await import('/ui/assets/names.js');
      const at = Date.UTC(2027, 0, 31, 12, 0, 7);
      const found = ticks(at, at + 300000, 6);
      return { step: found.step, round: found.times.every((one) => one % found.step === 0), count: found.times.length,
        routes: ['default/shop', 'prod/shop', 'default/route1', 'internal/default', 'unknown'].map(routeName),
        backends: ['llm:model:gpt-4o:0', 'llm:model:a:b:2', 'route/default/shop/0', 'service/prod/shop', 'unknown'].map(backendName),
        listeners: ['default/default.default', 'default/internal.admin'].map(listenerName) };
    })()""")
    assert told == {
        "step": 60000, "round": True, "count": 5,
        "routes": ["shop", "prod/shop", "route 2 (without a name)", "mcp (section)", "none"],
        "listeners": ["default", "internal/admin"],
        "backends": ["gpt-4o", "a:b (number 3)", "shop", "prod/shop", "none: answered by the gateway"],
    }  # fmt: skip
