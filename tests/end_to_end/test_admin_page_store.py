"""The views of the page at /ui that keep something: the editor of the configuration, requests, analytics."""

from __future__ import annotations

import json
import re
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
        connection.execute("UPDATE requests SET started_us = completed_us - 2000 - (id % 90) * (id % 70)")


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
    assert written == before.replace("x-shop: headgate", "x-shop: edited"), "nothing but the edited line has changed"
    assert "x-shop: edited" in page.js(f"{TEXT}.value")
    assert page.js(f"{TEXT}.value").count("<redacted>") == 3
    assert "sqlite://data.db" in page.js(f"{TEXT}.value"), "a path is no secret"
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


def test_requests_are_in_the_address_with_classes_of_statuses_and_what_is_open(page: Page, running: Gateway) -> None:
    call(running, "/broken/address")
    recorded(running)
    go(page, running, "requests?status=5xx&range=all")
    page.wait("document.querySelector('tbody tr') && [...document.querySelectorAll('tbody tr')].every((row) => /5\\d\\d/.test(row.children[1].textContent))")
    assert page.js("[...document.querySelectorAll('label')].find((one) => one.textContent.startsWith('Status')).querySelector('input').value") == "5xx"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", rows(page)[0][0])
    page.js("document.querySelector('tbody th button').click()")
    page.wait("document.querySelector('dialog.drawer').open && document.querySelector('dialog.drawer').innerText.includes('http.path')")
    opened = page.js("window.location.search")
    assert re.fullmatch(r"\?range=all&status=5xx&request=\d+", opened)
    page.go(f"http://127.0.0.1:{running.admin}/ui/requests{opened}")
    page.wait("document.querySelector('dialog.drawer')?.innerText.includes('http.path')")
    page.click("Close")
    page.wait("!document.querySelector('dialog.drawer').open && window.location.search === '?range=all&status=5xx'")


# Holds the first record that is asked for until held() is called; what waits for it has run when that is over.
HELD = """(() => {
  const real = window.fetch;
  let first = true;
  window.fetch = async (path, options) => {
    const answer = await real(path, options);
    if (!String(path).endsWith("/api/logs/get")) return answer;
    const found = await answer.json();
    if (first) {
      first = false;
      await new Promise((go) => { window.held = () => { go(); setTimeout(() => { window.settled = true; }); }; });
    }
    return { status: answer.status, json: async () => found };
  };
})()"""


def test_an_answer_that_comes_late_does_not_replace_the_request_that_was_chosen_since(page: Page, running: Gateway) -> None:
    for name in ("first", "second"):
        call(running, f"/broken/{name}")
    recorded(running)
    go(page, running, "requests?attribute=http.path%3D/broken/first")
    page.wait("document.querySelector('tbody tr')?.textContent.includes('/broken/first')")
    page.js(HELD)
    page.js("document.querySelector('tbody th button').click()")
    page.wait("Boolean(window.held)")
    page.fill("Attribute", "http.path=/broken/second")
    page.click("Search")
    page.wait("document.querySelector('tbody tr')?.textContent.includes('/broken/second')")
    page.js("document.querySelector('tbody th button').click()")
    page.wait("document.querySelector('dialog.drawer').innerText.includes('/broken/second')")
    page.js("window.held()")
    page.wait("window.settled")
    assert "/broken/second" in page.js("document.querySelector('dialog.drawer').innerText")


def test_conversations_are_shown_as_messages(page: Page, running: Gateway) -> None:
    """Of every format, whole and streamed; texts of models are text."""
    go(page, running, "requests")
    told = page.js("""(async () => {
      const { promptOf, completionOf } = await import('/ui/assets/conversation.js');
      const event = (one) => `data: ${JSON.stringify(one)}\n\n`;
      return {
        chat: promptOf(JSON.stringify({ messages: [{ role: 'system', content: 'be' }, { role: 'user', content: [{ type: 'text', text: 'hi' }, { type: 'image_url' }] },
          { role: 'assistant', content: null, tool_calls: [{ function: { name: 'add', arguments: '{}' } }] }] })),
        messages: promptOf(JSON.stringify({ system: 'be', messages: [{ role: 'user', content: [{ type: 'tool_result', content: 'three' }] }] })),
        responses: promptOf(JSON.stringify({ instructions: 'be', input: 'hi' })),
        gemini: promptOf(JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] })),
        other: promptOf('nothing'),
        whole: completionOf(JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'ok' } }] })),
        claude: completionOf(JSON.stringify({ role: 'assistant', content: [{ type: 'text', text: 'ok' }, { type: 'tool_use', name: 'add', input: { a: 1 } }] })),
        stream: completionOf(event({ choices: [{ index: 0, delta: { content: 'o' } }] }) + event({ choices: [{ index: 0, delta: { content: 'k',
          tool_calls: [{ index: 0, function: { name: 'add', arguments: '{' } }] } }] }) + event({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '}' } }] } }] })),
        events: completionOf(event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ok' } })),
        typed: completionOf(event({ type: 'response.output_text.delta', delta: 'ok' })),
      };
    })()""")
    call_of = {"name": "add", "arguments": "{}"}
    assert told == {
        "chat": [{"role": "system", "text": "be", "calls": []}, {"role": "user", "text": "hi\n[image_url]", "calls": []},
                 {"role": "assistant", "text": "", "calls": [call_of]}],
        "messages": [{"role": "system", "text": "be", "calls": []}, {"role": "user", "text": "three", "calls": []}],
        "responses": [{"role": "system", "text": "be", "calls": []}, {"role": "user", "text": "hi", "calls": []}],
        "gemini": [{"role": "user", "text": "hi", "calls": []}],
        "other": None,
        "whole": [{"role": "assistant", "text": "ok", "calls": []}],
        "claude": [{"role": "assistant", "text": "ok", "calls": [{"name": "add", "arguments": '{"a":1}'}]}],
        "stream": [{"role": "assistant", "text": "ok", "calls": [call_of]}],
        "events": [{"role": "assistant", "text": "ok", "calls": []}],
        "typed": [{"role": "assistant", "text": "ok", "calls": []}],
    }  # fmt: skip


@pytest.mark.parametrize("width", [390, 820])
def test_rows_are_cards_on_small_screens(page: Page, running: Gateway, width: int) -> None:
    call(running, "/catalogue/shoes")
    recorded(running)
    page.size(width, 900)
    try:
        go(page, running, "requests")
        page.wait("document.querySelector('tbody tr td')")
        assert page.js("document.documentElement.scrollWidth <= window.innerWidth")
        cells = "[...document.querySelector('tbody tr').children].map((one) => one.getBoundingClientRect())"
        assert page.js(f"{cells}.every((one) => one.left >= 0 && one.right <= window.innerWidth && one.width > 0)")
        assert page.js("getComputedStyle(document.querySelector('tbody tr td'), '::before').content") == '"Status"'
    finally:
        page.size(1280, 900)


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
    page.wait_text("catalogue")
