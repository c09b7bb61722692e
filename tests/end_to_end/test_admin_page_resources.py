"""The view of the page at /ui that edits stored resources."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.end_to_end.browser import Browser, Page
from tests.end_to_end.page_rig import browser, call, gateway_of, keep, page
from tests.end_to_end.running import Gateway
from tests.end_to_end.stored_rig import put, route, stored

pytestmark = pytest.mark.browser
__all__ = ["browser", "page"]
STORED = 'storage: {mode: hybrid}\ndatabase: {url: "sqlite://data.db"}\n'
TEXT = "document.querySelector('textarea.editor')"


@pytest.fixture
def running(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_of(tmp_path_factory.mktemp("gateway"), settings=STORED) as found:
        yield found


def go(page: Page, running: Gateway, name: str) -> None:
    page.go(f"http://127.0.0.1:{running.admin}/ui/{name}")
    page.wait("document.querySelector('#connection').dataset.state === 'live'")


def press(page: Page, title: str) -> None:
    page.js(f"[...document.querySelectorAll('#view button')].find((one) => one.textContent === {json.dumps(title)}).click()")


def say(page: Page, value: object) -> None:
    page.js(f"{TEXT}.value = {json.dumps(json.dumps(value))}")


def test_resources_are_added_changed_and_removed(page: Page, running: Gateway) -> None:
    go(page, running, "resources")
    page.wait_text("catalogue")
    say(page, route("new", "first"))
    press(page, "Save")
    page.wait_text("Saved; revision 1 runs.")
    assert call(running, "/new") == (200, "first")
    say(page, route("new", "second"))
    press(page, "Save")
    page.wait_text("Saved; revision 2 runs.")
    assert call(running, "/new") == (200, "second")
    # All faults are told, and nothing is changed.
    say(page, {**route("new", "third"), "nonsense": 1, "other": 2})
    press(page, "Save")
    page.wait_text("unknown field 'nonsense' (resource traffic.route/new)")
    page.wait_text("unknown field 'other' (resource traffic.route/new)")
    assert call(running, "/new") == (200, "second")
    # Somebody else was faster.
    assert put(running, "traffic.route", route("new", "theirs"))[0] == 200
    say(page, route("new", "mine"))
    press(page, "Save")
    page.wait_text("traffic.route/new was changed in the meantime: read it again")
    assert call(running, "/new") == (200, "theirs")
    page.forget()       # the browser notes the 422 and the 409
    go(page, running, "resources")
    page.wait_text("catalogue")
    press(page, "new")
    page.wait_text("Revision 3.")
    keep(page, "resources")
    page.js("window.confirm = () => true")
    press(page, "Remove")
    page.wait_text("Removed.")
    assert stored(running) == {}


def test_what_the_file_defines_cannot_be_edited_here_and_secrets_stay(page: Page, running: Gateway) -> None:
    go(page, running, "resources")
    page.wait_text("catalogue")
    press(page, "catalogue")
    page.wait_text("The file defines it: change it there.")
    assert page.js(f"{TEXT}.readOnly") is True
    assert put(running, "llm.provider", {"name": "p", "provider": "openai", "params": {"apiKey": "never-shown-3"}})[0] == 200
    go(page, running, "resources")
    page.wait("[...document.querySelectorAll('tbody button')].some((one) => one.textContent === 'p')")
    press(page, "p")
    page.wait_text("Revision 1.")
    assert json.loads(page.js(f"{TEXT}.value"))["params"]["apiKey"] == "<redacted>"
    press(page, "Save")
    page.wait_text("Saved; revision 2 runs.")
    assert "never-shown" not in page.js("document.body.textContent")
