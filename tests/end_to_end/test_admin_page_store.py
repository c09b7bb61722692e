"""The views of the page at /ui that keep something: the editor of the configuration, requests, analytics."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tests.end_to_end.browser import Browser, Page
from tests.end_to_end.page_rig import PAINTING, browser, call, gateway_of, keep, page, recorded, running
from tests.end_to_end.running import Gateway
from tests.end_to_end.tracing import wait_for

pytestmark = pytest.mark.browser
__all__ = ["browser", "page", "running"]
ROUNDS = 40 if PAINTING else 6
TEXT = "document.querySelector('textarea.editor')"
READY = f"{TEXT}?.value.includes('gateways')"


def go(page: Page, running: Gateway, name: str) -> None:
    page.go(f"http://127.0.0.1:{running.admin}/ui/{name}")
    page.wait("document.querySelector('#connection').dataset.state === 'live'")


def replace(page: Page, before: str, after: str) -> None:
    page.js(f"((t) => (t.value = t.value.replace({json.dumps(before)}, {json.dumps(after)}), t.dispatchEvent(new Event('input'))))({TEXT})")


def rows(page: Page) -> list[list[str]]:
    found = page.js("[...document.querySelectorAll('tbody tr')].map((row) => [...row.children].map((one) => one.textContent))")
    return list(found)


def a_day(running: Gateway) -> None:
    """For a picture: as if the records had come over a day, and more of them."""
    columns = "started_us, status, provider, request_model, response_model, input_tokens, output_tokens, cost_picos, error, attributes"
    with sqlite3.connect(running.path.parent / "data.db") as connection:
        for _ in range(4):
            connection.execute(f"INSERT INTO requests (completed_us, {columns}) SELECT completed_us, {columns} FROM requests WHERE status != 503 OR id % 9 = 0")
        connection.execute(
            "UPDATE requests SET completed_us = completed_us - (abs(random()) % 1000) * (abs(random()) % 1000) * 86400,"
            " request_model = CASE WHEN provider IS NULL THEN NULL WHEN id % 3 = 0 THEN 'sample-large' WHEN id % 7 = 0 THEN 'sample-small' ELSE 'sample' END,"
            " status = CASE WHEN status = 403 AND id % 8 THEN 200 ELSE status END"
        )


def test_the_file_is_edited_compared_and_written(page: Page, running: Gateway) -> None:
    before = running.path.read_text()
    go(page, running, "editor")
    page.wait(READY)
    page.wait_text("Can be written")
    assert "never-shown" not in page.js(f"{TEXT}.value")
    assert page.js("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Write the file').disabled") is True
    replace(page, "x-shop: headgate", "x-shop: edited")
    page.wait_text("Loads without an error.")
    page.wait_text("1 added, 1 removed")
    assert "x-shop: edited" in page.js("document.querySelector('.diff .added').textContent")
    keep(page, "editor")
    page.click("Write the file")
    page.wait_text("runs.")
    written = running.path.read_text()
    assert written == before.replace("x-shop: headgate", "x-shop: edited").replace("never-shown-1", '"never-shown-1"').replace(
        "apiKey: never-shown-2", 'apiKey: "never-shown-2"'
    ).replace('url: "sqlite://data.db"', 'url: "sqlite://data.db"')
    assert "x-shop: edited" in page.js(f"{TEXT}.value")
    assert page.js(f"{TEXT}.value").count("<redacted>") >= 3
    count = running.log().count("configuration reloaded")
    running.put(before)
    wait_for(lambda: running.log().count("configuration reloaded") > count)


def test_errors_lead_to_their_lines(page: Page, running: Gateway) -> None:
    go(page, running, "editor")
    page.wait(READY)
    replace(page, "timeout: {requestTimeout: 5s}", "timeout: {requestTimeout: soon}")
    page.wait_text("1 error")
    page.wait_text("requestTimeout: ")
    assert page.js("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Write the file').disabled") is True
    page.click("Line ")
    assert page.js("document.activeElement === " + TEXT)
    assert "soon" in page.js(f"{TEXT}.value.slice({TEXT}.selectionStart, {TEXT}.selectionEnd)")
    # What was typed is there again after a look elsewhere.
    page.click("Overview", "nav a")
    page.wait_text("What the gateway does now")
    page.click("Edit configuration", "nav a")
    page.wait(f"{TEXT}?.value.includes('soon')")
    page.wait_text("1 error")
    page.click("Discard changes")
    page.wait_text("Back to what the file has.")
    assert "soon" not in page.js(f"{TEXT}.value")


def test_a_file_that_somebody_else_changed_is_not_overwritten(page: Page, running: Gateway) -> None:
    before = running.path.read_text()
    go(page, running, "editor")
    page.wait(READY)
    replace(page, "x-shop: headgate", "x-shop: mine")
    page.wait_text("Loads without an error.")
    theirs = before.replace("body: locked", "body: theirs")
    running.put(theirs)
    page.click("Write the file")
    page.wait_text("Somebody changed the file")
    assert running.path.read_text() == theirs
    page.forget()       # the browser notes the 409
    page.click("Read the file again")
    page.wait_text("compared with it")
    assert "x-shop: mine" in page.js(f"{TEXT}.value")
    assert "body: theirs" in page.js("document.querySelector('.diff').textContent")
    page.click("Discard changes")
    running.put(before)


def test_read_only_shows_and_does_not_write(browser: Browser, tmp_path: Path) -> None:
    text = "gateways: {default: {port: {port}}}\n"
    with gateway_of(tmp_path, text, 1, "storage: {mode: readOnly}") as found:
        page = browser.page()
        go(page, found, "editor")
        page.wait_text("Read-only")
        assert page.js(f"{TEXT}.readOnly") is True
        assert page.js("[...document.querySelectorAll('button.primary')].every((one) => one.disabled)") is True
        for name in ("requests", "analytics"):
            page.go(f"http://127.0.0.1:{found.admin}/ui/{name}")
            page.wait_text("No request log")
        page.close()


def test_requests_are_searched_and_looked_at(page: Page, running: Gateway) -> None:
    call(running, "/catalogue/shoes")
    recorded(running)
    go(page, running, "requests")
    page.wait_text("/catalogue/shoes")
    page.fill("Status", "503")
    page.click("Search")
    page.wait("document.querySelector('tbody tr') && [...document.querySelectorAll('tbody tr')].every((row) => row.textContent.includes('503'))")
    assert {row[2] for row in rows(page)} <= {"GET /broken", "GET /shop/cart"}
    page.fill("Status", "")
    page.fill("Provider", "openai")
    page.click("Search")
    page.wait("document.querySelector('tbody tr') && [...document.querySelectorAll('tbody tr')].every((row) => row.textContent.includes('/v1/chat'))")
    first = rows(page)[0]
    assert first[4] == "sample"
    assert first[6].startswith("$0.0")
    page.js("document.querySelector('tbody th button').click()")
    page.wait_text("gen_ai.request.model")
    page.wait_text("Provider")
    keep(page, "requests")
    page.fill("Provider", "")
    page.fill("Attribute", "http.path=/locked")
    page.click("Search")
    page.wait("document.querySelector('tbody tr') && [...document.querySelectorAll('tbody tr')].every((row) => row.textContent.includes('/locked'))")


def test_requests_are_followed(page: Page, running: Gateway) -> None:
    go(page, running, "requests")
    page.wait("document.querySelector('tbody tr')")
    page.click("Follow")
    page.wait_text("Requests appear as they end.")
    page.wait_answer("/api/logs/tail")
    call(running, "/catalogue/just-now")
    page.wait_text("/catalogue/just-now")
    assert page.js("document.querySelector('tbody tr').textContent").find("/catalogue/just-now") > 0
    page.click("Follow")
    assert page.js("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Follow').getAttribute('aria-pressed')") == "false"


def test_older_requests_are_fetched(page: Page, running: Gateway) -> None:
    for _ in range(60):
        call(running, "/locked")
    recorded(running)
    go(page, running, "requests")
    page.wait_text("and more")
    assert len(rows(page)) == 50
    page.click("Older")
    page.wait("document.querySelectorAll('tbody tr').length > 50")


def test_requests_tokens_and_cost_over_time_by_group(page: Page, running: Gateway) -> None:
    go(page, running, "analytics")
    page.wait_text("sample")
    found = {row[0]: row for row in rows(page)}
    assert found["sample"][5].startswith("$")
    assert int(found["sample"][4].replace(",", "")) > 0
    assert page.js("[...document.querySelectorAll('.chart')].every((one) => one.querySelector('rect.column'))")
    if PAINTING:
        a_day(running)
        page.fill("Time", "86400")
        page.wait("document.querySelector('.chart').querySelectorAll('rect.column').length > 40")
        keep(page, "analytics")
        return
    page.click("sample")
    page.wait_text("sample: ")
    page.click("Show everything")
    page.wait_text("Everything: ")
    page.fill("Group by", "attributes.route")
    page.wait_text("default/catalogue")
