"""The view of the page at /ui for virtual keys: made, shown once, limited, rotated, revoked; at all widths, light and dark."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.end_to_end.browser import Browser, Page
from tests.end_to_end.page_rig import CONFIG, browser, call, gateway_of, keep, page
from tests.end_to_end.running import Gateway
from tests.end_to_end.stored_rig import ask

pytestmark = pytest.mark.browser
__all__ = ["browser", "page"]
STORED = """
storage: {mode: hybrid}
database: {url: "sqlite://data.db"}
modelCatalog: [{inline: {providers: {openai: {models: {sample: {rates: {input: "250", output: "1000"}}}}}}}]
"""
TEXT = CONFIG.replace("llm:\n", "llm:\n  policies: {apiKey: {virtualKeys: true, mode: optional}}\n")
SECRET = "document.querySelector('pre.secret')"
WIDTHS = (390, 820, 1440)


@pytest.fixture
def running(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_of(tmp_path_factory.mktemp("gateway"), TEXT, settings=STORED) as found:
        yield found


def go(page: Page, running: Gateway) -> None:
    page.go(f"http://127.0.0.1:{running.admin}/ui/keys")
    page.wait("document.querySelector('#connection').dataset.state === 'live'")
    page.js("window.confirm = () => true")


def chat(running: Gateway, key: str) -> int:
    body = {"model": "sample", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}
    return call(running, "/v1/chat/completions", body, authorization=f"Bearer {key}")[0]


def test_a_key_is_made_shown_once_used_rotated_and_revoked(page: Page, running: Gateway) -> None:
    assert ask(running, "PUT", "/api/teams/research", {"limits": [{"dollars": "500", "per": "month"}]})[0] == 200
    go(page, running)
    page.wait_text("No key yet.")
    page.wait("[...document.querySelectorAll('select option')].some((one) => one.textContent === 'research')")
    page.fill("Name", "ada")
    page.fill("Owner", "ada@example.com")
    page.fill("Team", "research")
    page.fill("Models", "sample, other*")
    page.fill("Limits", "requests=4/month@50, dollars=25/day")
    page.click("Create key")
    page.wait_text("ada is created.")
    page.wait_text("0 of 4 requests a month")
    first = page.js(f"{SECRET}.textContent")
    assert first.startswith("hg-")
    # The gateway knows the key, and the page does not any more once it is put away.
    assert [chat(running, first) for _ in range(2)] == [200, 200]
    page.click("I have it")
    assert page.js(f"{SECRET} === null && !document.body.innerHTML.includes({json.dumps(first)})")
    status, stored = ask(running, "GET", "/api/keys/ada")
    assert (status, stored["owner"], stored["team"], stored["allowedModels"]) == (200, "ada@example.com", "research", ["sample", "other*"])
    assert stored["limits"] == [{"requests": 4, "per": "month", "warnAtPercent": 50}, {"dollars": "25", "per": "day"}]
    # The bars show what was used of the limits.
    page.click("ada", "button.link")
    page.wait_text("2 of 4 requests a month")
    bars = "[...document.querySelectorAll('.limits .meter')].map((one) => [one.className, one.getAttribute('aria-valuenow'), one.firstChild.style.width])"
    assert page.js(bars)[0] == ["meter wide warn", "50", "50%"]
    page.wait_text("of $25.00 a day")
    keep(page, "keys")
    page.click("Rotate")
    page.wait_text("ada has a new key.")
    second = page.js(f"{SECRET}.textContent")
    assert second != first
    assert [chat(running, first), chat(running, second)] == [401, 200]
    page.click("Revoke")
    page.wait_text("ada is revoked.")
    assert page.js(f"{SECRET} === null")
    assert chat(running, second) == 401
    page.wait("document.querySelector('td .badge.bad').textContent === 'revoked'")
    page.wait("[...document.querySelectorAll('button')].filter((one) => ['Rotate', 'Revoke'].includes(one.textContent)).every((one) => one.disabled)")
    assert page.problems() == []


def test_mistakes_are_told_and_change_nothing(page: Page, running: Gateway) -> None:
    go(page, running)
    page.fill("Name", "ada")
    page.fill("Limits", "euros=4/month")
    page.click("Create key")
    page.wait_text("euros=4/month: the unit is requests, tokens or dollars")
    marked = "[...document.querySelectorAll('[aria-invalid=true]')].map((one) => one.closest('label').textContent.slice(0, 6))"
    assert page.js(marked) == ["Limits"]
    # While it is mended, the field says what is wrong still.
    page.fill("Limits", "dollars=4/week")
    page.wait_text("dollars=4/week: the window is minute, day or month", "#bad-limits")
    page.fill("Limits", "dollars=4/day")
    page.wait(f"{marked}.length === 0 && document.querySelector('#bad-limits').textContent === ''")
    page.fill("Limits", "")
    page.fill("Name", "<img src=x onerror=document.title='owned'>")
    page.click("Create key")
    page.wait_text("Nothing was changed: a key needs a name")
    assert ask(running, "GET", "/api/keys")[1]["keys"] == []
    assert page.js("document.title") == "Keys · Headgate"
    page.forget()


def test_it_fits_all_widths_light_and_dark(page: Page, running: Gateway) -> None:
    """With long names, many limits, and a key that is shown."""
    for name in ("ada", "a-program-with-a-name-that-is-very-long-and-has-no-blanks-at-all", "ci"):
        limits = [{"requests": 10**9, "per": "minute"}, {"tokens": 10**12, "per": "day"}, {"dollars": "12345.678901", "per": "month", "warnAtPercent": 80}]
        assert ask(running, "POST", "/api/keys", {"name": name, "owner": f"{name}@example.com", "limits": limits})[0] == 201
    go(page, running)
    page.click("a-program", "button.link")
    page.wait_text("of 1T tokens a day")
    page.click("Rotate")
    page.wait(f"{SECRET} !== null")
    for width in WIDTHS:
        page.size(width, 860)
        for theme in ("light", "dark"):
            page.prefer(prefers_color_scheme=theme)
            assert page.js("document.documentElement.scrollWidth") <= width, (width, theme)
            assert page.js("[...document.querySelectorAll('.card')].every((one) => one.getBoundingClientRect().right <= innerWidth)")
