"""The page at /ui in a real browser. `HEADGATE_PICTURES=1` writes the pictures of the docs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.browser import SHIFT, Browser, Page
from tests.end_to_end.page_rig import EVIL, PAINTING, browser, gateway_of, keep, page, running, traffic
from tests.end_to_end.processes import kill
from tests.end_to_end.running import Gateway

from headgate.cli.flame_graph import flame_graph
from headgate.cli.pprof_reader import ReadProfile, ReadSample

pytestmark = pytest.mark.browser
__all__ = ["browser", "page", "running"]
VIEWS = {
    "": "Overview", "traffic": "Traffic", "endpoints": "Endpoints", "trace": "Trace", "requests": "Requests",
    "analytics": "Analytics", "models": "Models", "keys": "Keys", "playground": "Playground", "mcp": "MCP", "configuration": "Configuration",
    "editor": "Edit configuration", "expressions": "Expressions", "logging": "Log levels",
}  # fmt: skip


def view(page: Page, running: Gateway, name: str) -> None:
    page.go(f"http://127.0.0.1:{running.admin}/ui/{name}".rstrip("/"))
    page.wait_text(VIEWS[name], "h1")
    page.wait("document.querySelector('#connection').dataset.state === 'live'")


def tour(page: Page, running: Gateway) -> Iterator[str]:
    """Go through all views by their links; the name of each when it is drawn."""
    view(page, running, "")
    for name, title in VIEWS.items():
        page.click(title, "nav a")
        page.wait_text(title, "h1")
        # One answer of the gateway is behind it, and what it made the view ask for.
        page.js("fetch('/api/state').then((one) => one.json()).then(() => new Promise((done) => setTimeout(done, 60)))")
        yield name


def busy(page: Page, running: Gateway) -> None:
    """Traffic over a few of the page's seconds; half a minute of it for a picture."""
    for number in range(40 if PAINTING else 3):
        traffic(running, 1 + (number * 7) % 5)
        page.js("new Promise((done) => setTimeout(done, 700))")


def test_every_view_is_reached_by_its_link_and_by_its_address(page: Page, running: Gateway) -> None:
    view(page, running, "")
    for name, title in VIEWS.items():
        page.click(title, "nav a")
        page.wait_text(title, "h1")
        assert page.js("location.pathname") == (f"/ui/{name}" if name else "/ui")
        assert page.js("document.querySelector('nav [aria-current=page]').textContent") == title
        page.go(page.js("location.href"))
        page.wait_text(title, "h1")
    page.js("history.back()")
    page.wait("!location.pathname.endsWith('/logging')")


def test_the_overview_counts_what_came(page: Page, running: Gateway) -> None:
    view(page, running, "")
    page.wait_text("catalogue")
    before = page.js("document.querySelector('.tile dd + dd').textContent")
    traffic(running, 3)
    page.wait(f"document.querySelector('.tile dd + dd').textContent !== {json.dumps(before)}")
    page.wait("document.querySelector('.chart path.series')")
    page.wait("Number(document.querySelector('.tile dd').textContent) > 0", "no rate")
    busy(page, running)
    keep(page, "overview")


def test_traffic_shows_errors_and_latencies_of_routes_and_backends(page: Page, running: Gateway) -> None:
    view(page, running, "traffic")
    page.wait_text("broken")
    row = "[...document.querySelectorAll('tr')].find((one) => one.textContent.startsWith('broken'))"
    assert "100 %" in page.js(f"{row}.textContent")
    page.click("broken")
    page.wait_text("Route broken")
    page.click("Show all requests")
    page.wait_text("All requests")
    page.click("p95", "th button")
    assert page.js("document.querySelector('th[aria-sort]').textContent") == "p95"
    assert page.js("document.querySelectorAll('.chart rect.column').length") == 19
    page.click("catalogue")
    busy(page, running)
    keep(page, "traffic")


def test_endpoints_show_who_is_out(page: Page, running: Gateway) -> None:
    view(page, running, "endpoints")
    page.wait_text("shop-a")
    out = "Boolean(document.querySelector('.badge.bad')?.textContent.startsWith('out for'))"
    for _ in range(40):
        traffic(running, 2)         # until the sick one has been tried
        if page.js(out):
            break
    page.wait(out)
    page.wait_text("127.0.0.1:1")
    keep(page, "endpoints")


def test_models_show_tokens(page: Page, running: Gateway) -> None:
    view(page, running, "models")
    page.wait_text("openai")
    busy(page, running)
    cells = page.js("[...document.querySelectorAll('tbody tr')].map((row) => [...row.children].map((one) => one.textContent))")[0]
    assert cells[:2] == ["sample", "openai"]
    assert cells[2] == "healthy"
    assert cells[3] == "$250 in, $1000 out"
    assert int(cells[9].replace(",", "")) >= 54
    keep(page, "models")


def test_a_model_answers_word_by_word(page: Page, running: Gateway) -> None:
    view(page, running, "playground")
    page.wait("document.querySelector('datalist option')")
    page.fill("Model", "slow")
    said = "How many red shoes are left?" if PAINTING else f"Markup stays text: {EVIL}{' and more' * 10}"
    page.fill("Message", said)
    text = "document.querySelector('.turn.assistant div')?.textContent"
    # The page itself looks: whoever asks it may come late.
    page.js(
        f"(new MutationObserver(() => window.partly ||= {text})).observe(document.body, {{subtree: true, childList: true, characterData: true}})"
    )
    page.click("Send")
    partly = page.wait("window.partly")
    page.wait(f"{text} === {json.dumps(f'You said: {said}')}")
    assert said not in partly, "all at once"
    page.wait_text("tokens in")
    assert page.js("document.querySelector('.turn img')") is None
    page.fill("Message", "And once more, whole")
    page.js("document.querySelector('input[type=checkbox]').click()")
    page.click("Send")
    page.wait_text("You said: And once more, whole")
    page.fill("Model", "missing")
    page.fill("Message", "Is there such a model?")
    page.click("Send")
    page.wait_text("404: The model `missing` does not exist")
    keep(page, "playground")


def test_a_stream_can_be_stopped(page: Page, running: Gateway) -> None:
    view(page, running, "playground")
    page.wait("document.querySelector('datalist option')")
    page.fill("Model", "slow")
    page.fill("Message", "word " * 400)
    page.click("Send")
    page.wait("document.querySelector('.turn.assistant div')?.textContent.includes('word')")
    page.click("Stop")
    page.wait_text("Stopped.")
    assert page.js("document.querySelector('.turn.assistant div').textContent").count("word") < 400


def test_a_tool_is_listed_and_tried(page: Page, running: Gateway) -> None:
    view(page, running, "mcp")
    page.wait("document.querySelector('select').options.length === 2")
    page.js("((one) => one.selectedIndex = [...one.options].findIndex((o) => o.text.includes('/mcp')))(document.querySelector('select'))")
    page.click("Connect")
    page.wait_text("headgate-sample")
    page.click("add")
    page.fill("a *", "19")
    page.fill("b *", "23")
    page.click("Call tool")
    page.wait("document.querySelector('[aria-label=\"Result of the call\"] pre')?.textContent === '42'")
    page.wait_text("tools/call")
    page.wait("[...document.querySelectorAll('td.number')].some((one) => one.textContent === '1')", "no session is counted")
    keep(page, "mcp")
    sessions = running.metric("gw_mcp_sessions")
    page.click("Overview", "nav a")
    page.wait_text("What the gateway does now")
    page.wait(f"fetch('/api/state').then((one) => one.json()).then((one) => one.sessions.reduce((all, s) => all + s.count, 0) < {sessions})",
              "leaving the view ends its session")  # fmt: skip


def test_what_a_server_says_is_text(page: Page, running: Gateway) -> None:
    view(page, running, "mcp")
    page.wait("document.querySelector('select').options.length === 2")
    page.js("((one) => one.selectedIndex = [...one.options].findIndex((o) => o.text.includes('/hostile')))(document.querySelector('select'))")
    page.click("Connect")
    page.wait_text("<script>")
    page.click("evil")
    page.wait_text("<script>", "h2.wrap")
    page.js("document.querySelectorAll('.split form textarea')[0].value = 'own'")
    page.js("document.querySelector('.split form select').selectedIndex = 1")
    page.click("Call tool")
    page.wait("document.querySelectorAll('[aria-label=\"Result of the call\"] pre').length === 2")
    assert page.js("document.querySelectorAll('#view img, #view script, #view a[href^=javascript]').length") == 0


@pytest.mark.skipif(PAINTING, reason="pictures have other names")
def test_names_of_routes_are_text_in_every_view(page: Page, running: Gateway) -> None:
    for name in tour(page, running):
        if name == "traffic":
            page.wait_text(EVIL)
        assert page.js("document.querySelectorAll('#view img').length") == 0
    page.js("document.querySelector('#nav a[href$=configuration]').click()")
    page.wait("document.querySelector('.tree')")
    page.js("((one) => (one.value = 'onerror', one.dispatchEvent(new Event('input'))))(document.querySelector('input[type=search]'))")
    page.wait_text("onerror=document", ".results")
    assert page.js("document.querySelectorAll('#view img').length") == 0


def test_markup_cannot_be_made_of_texts_at_all(page: Page, running: Gateway) -> None:
    view(page, running, "")
    refused = "(() => { try { document.body.insertAdjacentHTML('beforeend', '<b></b>'); return 'done'; } catch (e) { return e.name; } })()"
    assert page.js(refused) == "TypeError", "trusted types are not enforced"
    page.forget()


def test_the_configuration_is_searched_and_opened(page: Page, running: Gateway) -> None:
    view(page, running, "configuration")
    page.wait("document.querySelector('.tree summary')")
    page.js("((one) => (one.focus(), one.value = 'x-shop', one.dispatchEvent(new Event('input'))))(document.querySelector('input[type=search]'))")
    page.wait("document.querySelector('.results button')")
    page.click("binds", ".results button")
    page.wait("document.querySelector('.tree .target')?.textContent.includes('headgate')")
    keep(page, "configuration")
    page.click("File")
    page.wait("[...document.querySelectorAll('.tree > li .key')].some((one) => one.textContent === 'llm')")
    page.js("((one) => (one.value = 'redacted', one.dispatchEvent(new Event('input'))))(document.querySelector('input[type=search]'))")
    page.wait_text("3 matches")
    assert "never-shown" not in page.js("document.body.innerText")


def test_a_request_is_sent_and_traced(page: Page, running: Gateway) -> None:
    view(page, running, "trace")
    page.wait("document.querySelector('select').options.length > 0")
    page.fill("Path", "/catalogue/boots")
    page.click("Send and trace")
    page.wait_text("Answered with status 200")
    page.wait_text("Complete:")
    page.click("Route ", ".waterfall button")
    page.wait("document.querySelector('pre').textContent.includes('default/catalogue')")
    assert page.js("document.querySelectorAll('.waterfall .bar').length") >= 1
    ends = page.js("[...document.querySelectorAll('.waterfall .bar')].every((one) => parseFloat(one.style.left) + parseFloat(one.style.width) <= 100)")
    assert ends is True
    page.click("Call result", ".waterfall button")
    keep(page, "trace")


def test_a_refusal_is_told_in_words(page: Page, running: Gateway) -> None:
    view(page, running, "trace")
    page.wait("document.querySelector('select').options.length > 0")
    page.fill("Path", "/locked/door")
    page.click("Send and trace")
    page.wait_text("Answered with status 403")
    page.wait_text("Complete: ")
    assert "[object Object]" not in page.js("document.querySelector('#view').innerText")
    assert page.js("[...document.querySelectorAll('.waterfall tr')].some((row) => row.textContent.includes('direct_response') && row.textContent.includes('403'))")


def test_a_trace_waits_stops_and_tells_a_bad_expression(page: Page, running: Gateway) -> None:
    view(page, running, "trace")
    page.fill("Only when", "request.path ==")
    page.click("Trace the next request")
    page.wait_text("invalid expression")
    # The browser logs answers of 400 as errors of the network, which this one is not.
    page.forget()
    page.fill("Only when", 'request.path == "/never"')
    page.click("Trace the next request")
    page.wait_text("Waiting for a request.")
    page.wait("fetch('/api/state').then((one) => one.json()).then((one) => one.watchers === 1)")
    page.click("Stop waiting")
    page.wait_text("Stopped.")
    page.wait("fetch('/api/state').then((one) => one.json()).then((one) => one.watchers === 0)")


def test_expressions_are_tried(page: Page, running: Gateway) -> None:
    view(page, running, "expressions")
    page.click("Evaluate")
    page.wait("document.querySelector('pre').textContent === 'true'")
    keep(page, "expressions")
    page.fill("CEL expression", "request.pth")
    page.click("Evaluate")
    page.wait("document.querySelector('pre').textContent.includes('did you mean')")
    page.forget()


def test_the_log_level_is_changed_and_reset(page: Page, running: Gateway) -> None:
    view(page, running, "logging")
    page.wait("document.querySelector('output').textContent === 'info'")
    page.fill("Module", "headgate.mcp")
    page.click("Set")
    page.wait("document.querySelector('output').textContent === 'headgate.mcp=debug,info'")
    page.click("warn")
    page.wait("document.querySelector('output').textContent === 'headgate.mcp=debug,warn'")
    page.wait("document.querySelector('[aria-pressed=true]').textContent === 'warn'")
    keep(page, "logging")
    page.fill("Module", "a b")
    page.click("Set")
    page.wait_text("Invalid level")
    page.forget()
    page.click("Back to the level")
    page.wait("document.querySelector('output').textContent === 'info'")


def test_nothing_is_asked_of_anybody_else(page: Page, running: Gateway) -> None:
    for _ in tour(page, running):
        pass
    asked = page.requests()
    assert len(asked) > len(VIEWS)
    # Pictures of the browser itself, such as those of fields for dates.
    sent = [url for url in asked if not url.startswith("data:")]
    assert {url.split("/")[2] for url in sent} == {f"127.0.0.1:{running.admin}"}


def test_it_is_walked_through_with_the_keyboard_alone(page: Page, running: Gateway) -> None:
    view(page, running, "")
    page.press("Tab")
    assert page.js("document.activeElement.textContent") == "Skip to content"
    page.press("Enter")
    page.wait("['main', '#main'].includes(document.activeElement.id || location.hash)")
    view(page, running, "logging")
    page.wait("document.querySelector('output').textContent === 'info'")
    page.press("Tab")
    reached = []
    for _ in range(40):
        page.press("Tab")
        text = page.js("((one) => (one.textContent || one.getAttribute('aria-label') || one.tagName).trim())(document.activeElement)")
        seen = page.js("((one) => { const s = getComputedStyle(one), b = one.getBoundingClientRect(); return one === document.body ||"
                       " (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2 && b.width > 0); })(document.activeElement)")  # fmt: skip
        assert seen, f"focus on {text!r} is not to be seen"
        reached.append(text)
        if text == "error":
            break
    assert reached[1 : 1 + len(VIEWS)] == list(VIEWS.values()), "the views come first, in their order"
    page.press("Enter")
    page.wait("document.querySelector('output').textContent === 'error'")
    page.press("Tab")
    page.press("Tab", SHIFT)
    assert page.js("document.activeElement.textContent") == "error"
    while page.js("document.activeElement.textContent") != "Back to the level at the start":
        page.press("Tab")
    page.press("Space")
    page.wait("document.querySelector('output').textContent === 'info'")


def test_the_keyboard_keeps_its_place_while_figures_change(page: Page, running: Gateway) -> None:
    view(page, running, "traffic")
    page.wait_text("locked")
    page.js("[...document.querySelectorAll('td button, th button.link')].find((one) => one.textContent === 'locked').focus()")
    traffic(running, 3)
    page.js("new Promise((done) => setTimeout(done, 2200))")
    assert page.js("document.activeElement.textContent") == "locked"


def test_screen_readers_find_landmarks_names_and_heads_of_tables(page: Page, running: Gateway) -> None:
    for name in tour(page, running):
        nodes = [one for one in page.accessible() if not one["ignored"]]
        roles = [one["role"]["value"] for one in nodes]
        assert {"banner", "navigation", "main"} <= set(roles), name
        assert roles.count("heading") >= 2
        for one in nodes:
            if one["role"]["value"] in ("button", "link", "textbox", "searchbox", "combobox", "checkbox", "spinbutton", "table", "image", "img"):
                assert one.get("name", {}).get("value"), (name, one["role"], one.get("properties"))
        bare = page.js("[...document.querySelectorAll('table')].filter((one) => !one.caption || [...one.querySelectorAll('th')].some((h) => !h.scope)).length")
        assert bare == 0, name


def test_it_is_dark_or_light_as_the_system_or_the_user_wants(page: Page, running: Gateway) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    page.prefer(prefers_color_scheme="light")
    view(page, running, "")
    light = page.js(background)
    page.prefer(prefers_color_scheme="dark")
    dark = page.js(background)
    assert light != dark
    page.click("Theme: system")
    assert page.js(background) == light
    view(page, running, "traffic")
    assert page.js(background) == light, "the choice is kept"
    page.click("Theme: light")
    page.prefer(prefers_color_scheme="light")
    assert page.js(background) == dark
    page.click("Theme: dark")
    assert page.js(background) == light


CONTRAST = """
(() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const lum = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (one) => { for (let e = one; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c; } return [255, 255, 255]; };
  return [...document.querySelectorAll('body *')].filter((one) => one.offsetParent && [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((one) => {
    const [a, b] = [lum(parse(getComputedStyle(one).color)), lum(behind(one))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), one.textContent.slice(0, 40)];
  }).filter(([ratio, text]) => ratio < 4.5);
})()
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(page: Page, running: Gateway, theme: str) -> None:
    page.prefer(prefers_color_scheme=theme)
    for name in tour(page, running):
        assert page.js(CONTRAST) == [], name


def test_it_fits_a_small_telephone(page: Page, running: Gateway) -> None:
    """Wider windows: `keep`."""
    page.size(360, 760)
    for name in tour(page, running):
        assert page.js("document.documentElement.scrollWidth") <= 360, name


def test_nothing_moves_for_those_who_want_stillness(page: Page, running: Gateway) -> None:
    page.prefer(prefers_reduced_motion="reduce")
    view(page, running, "")
    moving = "[...document.querySelectorAll('*')].some((one) => getComputedStyle(one).transitionDuration.split(',').some((t) => parseFloat(t) > 0) || getComputedStyle(one).animationName !== 'none')"
    assert page.js(moving) is False


def test_it_lives_through_a_worker_s_death_and_a_reload(page: Page, running: Gateway) -> None:
    view(page, running, "")
    page.wait_text("catalogue")
    before = page.js("document.querySelector('.tile dd + dd').textContent")
    kill(running.worker_pids()[0])
    page.wait("[...document.querySelectorAll('.facts dt')].find((one) => one.textContent === 'Workers replaced').nextSibling.textContent === '1'")
    running.wait_log("worker restarted")
    assert page.js("document.querySelector('.tile dd + dd').textContent") == before, "counters outlive workers"
    page.click("Configuration", "nav a")
    page.wait("document.querySelector('.tree')")
    text = running.path.read_text()
    running.put(text.replace("x-shop: headgate", "x-shop: reloaded"))
    page.wait_text("generation 2", "#connection")
    page.js("((one) => (one.value = 'x-shop', one.dispatchEvent(new Event('input'))))(document.querySelector('input[type=search]'))")
    page.wait_text("reloaded", ".results")
    running.put(text.replace("- name: catalogue", "- nam: catalogue"))
    page.wait_text("could not be loaded", "#banner")
    running.put(text)
    page.wait("document.querySelector('#banner').hidden")


def test_it_says_when_the_gateway_is_gone(browser: Browser, tmp_path: Path) -> None:
    with gateway_of(tmp_path, "gateways: {default: {port: {port}}}\n", 1) as found:
        page = browser.page()
        view(page, found, "")
        page.wait_text("Longer ranges need a request log")
        for name, text in (("playground", "No route leads to a model"), ("mcp", "No route leads to an MCP"), ("", "No request has come yet")):
            page.click(VIEWS[name], "nav a")
            page.wait_text(text)
        found.stop()
        page.wait_text("The gateway does not answer", "#banner")
        assert page.js("document.querySelector('#connection').dataset.state") == "lost"
        page.close()


def test_a_flame_graph_is_drawn_searched_and_entered(page: Page, tmp_path: Path) -> None:
    stacks = (ReadSample(("main", "parse"), (30,), "worker 0"), ReadSample(("main", "send"), (60,), "worker 0"))
    (tmp_path / "flame.html").write_text(flame_graph(ReadProfile((("cpu", "count"),), stacks), "cpu", "cpu"))
    page.go(f"file://{tmp_path}/flame.html")
    frames = "[...document.querySelectorAll('.frame')].map((one) => one.textContent)"
    page.wait(f"{frames}.length > 0")
    assert page.js(frames) == ["all", "worker 0", "main", "send", "parse"]
    page.fill("Search", "PARSE")
    page.wait("document.querySelector('#share').textContent === 'found: 33.33 %'")
    assert page.js("document.querySelector('.frame.found').textContent") == "parse"
    page.click("send")
    page.wait("document.querySelector('#share').textContent === 'found: 0.00 %'")
    assert page.js(frames) == ["all", "worker 0", "main", "send"]
    page.click("Whole")
    page.wait(f"{frames}.length === 5")
