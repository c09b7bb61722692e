"""The editor of the page at /ui: line numbers, colours, completion from the schema; and cards of keys."""

from __future__ import annotations

import json

import pytest
from tests.end_to_end.browser import Page
from tests.end_to_end.page_rig import browser, page, running
from tests.end_to_end.running import Gateway

pytestmark = pytest.mark.browser
__all__ = ["browser", "page", "running"]
TEXT = "document.querySelector('textarea.editor')"
OFFERED = "[...document.querySelectorAll('.completions:not([hidden]) strong')].map((one) => one.textContent)"


def go(page: Page, running: Gateway) -> None:
    page.go(f"http://127.0.0.1:{running.admin}/ui/editor")
    page.wait("document.querySelector('#connection').dataset.state === 'live'")
    page.wait(f"{TEXT}?.value.includes('gateways')")


def at(page: Page, text: str) -> None:
    """Put the caret behind the first occurrence of a text."""
    page.js(f"((t) => {{ const at = t.value.indexOf({json.dumps(text)}) + {len(text)}; t.focus(); t.setSelectionRange(at, at); }})({TEXT})")


def schema_is_there(page: Page) -> None:
    page.wait_answer("/api/config/schema")
    # Completion is asked for until the schema has been read.
    page.wait(f"({TEXT}.dispatchEvent(new KeyboardEvent('keydown', {{key: ' ', ctrlKey: true}})), {OFFERED}.length > 0)")


def test_lines_have_numbers_and_colours(page: Page, running: Gateway) -> None:
    go(page, running)
    page.wait("document.querySelector('.gutter span')?.textContent === '1'")
    lines = page.js(f"{TEXT}.value.split('\\n')")
    painted = page.js("document.querySelector('.paint code').textContent.split('\\n')")
    assert len(painted) > 10
    assert painted[: len(painted) - 1] == lines[: len(painted) - 1], "every letter is painted"
    assert "gateways" in page.js("[...document.querySelectorAll('.y-key')].map((one) => one.textContent)")
    assert "<redacted>" in page.js("[...document.querySelectorAll('.y-mark')].map((one) => one.textContent)")
    tops = "[document.querySelector('.gutter span').getBoundingClientRect().top, document.querySelector('.paint code').getBoundingClientRect().top]"
    first, second = page.js(tops)
    assert abs(first - second) < 1
    # Lines below are painted once they are scrolled to.
    page.js(f"((t) => {{ t.scrollTop = t.scrollHeight; }})({TEXT})")
    page.wait(f"[...document.querySelectorAll('.gutter span')].at(-1).textContent === String({TEXT}.value.split('\\n').length)")
    first, second = page.js(tops)
    assert abs(first - second) < 1


def test_a_wrong_line_is_marked(page: Page, running: Gateway) -> None:
    go(page, running)
    page.js(f"((t) => (t.value = t.value.replace('timeout: {{requestTimeout: 5s}}', 'timeout: {{requestTimeout: soon}}'), t.dispatchEvent(new Event('input'))))({TEXT})")
    page.wait_text("1 error")
    page.click("Line ")
    line = page.js(f"{TEXT}.value.slice(0, {TEXT}.selectionStart).split('\\n').length")
    page.wait(f"document.querySelector('.gutter .bad')?.textContent === '{line}'")
    page.click("Discard changes")
    page.wait("!document.querySelector('.gutter .bad')")


def test_names_and_words_are_completed_from_the_schema(page: Page, running: Gateway) -> None:
    go(page, running)
    at(page, "- name: catalogue\n")
    schema_is_there(page)
    page.press("Escape")
    page.wait(f"{OFFERED}.length === 0")
    page.write("  hostn")
    page.wait(f"{OFFERED}[0] === 'hostnames'")
    assert page.js(f"{TEXT}.getAttribute('aria-activedescendant')")
    page.press("Enter")
    page.wait(f"{TEXT}.value.includes('- name: catalogue\\n  hostnames: ')")
    # Within a policy, and a word of a value.
    page.js(f"((t) => (t.value = 'routes:\\n- policies:\\n    localRateLimit:\\n    - type: re', t.dispatchEvent(new Event('input')), t.focus(), t.setSelectionRange(t.value.length, t.value.length), t.dispatchEvent(new Event('input'))))({TEXT})")
    page.wait(f"{OFFERED}.includes('requests')")
    page.press("Tab")
    page.wait(f"{TEXT}.value.endsWith('type: requests')")
    page.press("Tab")
    assert page.js(f"document.activeElement !== {TEXT}"), "without an offer Tab leaves the field"
    page.click("Discard changes")
    page.wait_text("Back to what the file has.")


def test_places_are_found_by_indentation_and_braces(page: Page, running: Gateway) -> None:
    go(page, running)
    told = page.js("""(async () => {
      const { placeAt } = await import('/ui/assets/schema-paths.js');
      const place = (text) => {
        const lines = text.split('\\n');
        const found = placeAt(lines, lines.length - 1, lines.at(-1).length);
        return found && [found.path.map((one) => (typeof one === 'string' ? one : '[]')).join('.'), typeof found.key === 'symbol' ? '[]' : found.key, found.typed];
      };
      return [place('ro'), place('routes:\\n- na'), place('routes:\\n- name: a\\n  ba'), place('routes:\\n- name: a\\n  backends:\\n  - ho'), place('llm:\\n  models:\\n    - name: x\\n\\n      # note\\n      provider: op'),
        place('llm: {\\n  models: [\\n    {name: x, # }\\n     pro'), place('routes:\\n- matches:\\n  - {path: {exact: "/{"},\\n     me'), place('routes:\\n- matches:\\n  - pa'), place('a: {b: [\\n  c\\n]}\\nro'),
        place('a: {b'), place('a: 1 # b'), place('routes:\\n- name: a\\n  matches: [{path: {ex'), place('llm:\\n  models:\\n  - {name: "x: {", provider: op'), place('a: {b: {c: 1}, d'), place('a: {b: 1}'), place('a: [b'), place('routes:\\n- name: a\\n- na'), place('config:\\n  logging:\\n    level: info\\nro')];
    })()""")
    assert told == [
        ["", None, "ro"], ["routes.[]", None, "na"], ["routes.[]", None, "ba"], ["routes.[].backends.[]", None, "ho"], ["llm.models.[]", "provider", "op"],
        ["llm.models.[]", None, "pro"], ["routes.[].matches.[]", None, "me"], ["routes.[].matches.[]", None, "pa"], ["", None, "ro"],
        ["a", None, "b"], None, ["routes.[].matches.[].path", None, "ex"], ["llm.models.[]", "provider", "op"], ["a", None, "d"], None, ["a", "[]", "b"],
        ["routes.[]", None, "na"], ["", None, "ro"],
    ]  # fmt: skip


def test_a_new_line_keeps_the_indentation_and_undo_takes_it_back(page: Page, running: Gateway) -> None:
    go(page, running)
    before = page.js(f"{TEXT}.value")
    at(page, "    requestHeaderModifier: {set: {x-shop: headgate}}")
    page.press("Enter")
    page.wait(f"{TEXT}.value.includes('x-shop: headgate}}}}\\n    \\n')")
    page.js("document.execCommand('undo')")
    page.wait(f"{TEXT}.value === {json.dumps(before)}")
