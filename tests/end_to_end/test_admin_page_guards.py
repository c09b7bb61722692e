"""What guards see, on the page: for all routes and for the chosen one, at all widths, and what a screen reader finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.end_to_end.browser import Browser, Page
from tests.end_to_end.page_rig import CONFIG, browser, call, gateway_of, keep, page
from tests.end_to_end.running import Gateway

pytestmark = pytest.mark.browser
__all__ = ["browser", "page"]
GUARDS = "llm:\n  policies: {guardrails: {request: [{regex: {builtins: [email]}}], response: [{regex: {action: reject, builtins: [ssn]}}]}}\n"
TABLE = "[...document.querySelectorAll('table')].find((one) => one.caption.textContent === 'What guards see, by body')"
ROWS = f"[...({TABLE})?.tBodies[0].rows ?? []].map((row) => [...row.cells].map((cell) => cell.textContent))"


@pytest.fixture
def running(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_of(tmp_path_factory.mktemp("gateway"), CONFIG.replace("llm:\n", GUARDS)) as found:
        assert call(found, "/catalogue/boots")[0] == 200
        yield found


def test_the_page_says_what_guards_see(page: Page, running: Gateway) -> None:
    page.go(f"http://127.0.0.1:{running.admin}/ui/traffic")
    page.wait_text("What guards see")
    page.wait(f"{ROWS}.length > 10")
    rows = page.js(ROWS)
    [streams] = [row for row in rows if row[0] == "regex: reject, response 1" and row[1].startswith("sample at ") and row[2] == "stream"]
    assert streams[3:] == ["nothing", "the answer (streaming is off)"]
    [plain] = [row for row in rows if row[0] == "regex: mask, request 1" and row[1].startswith("sample at ") and row[2] == "plain"]
    assert plain[3:] == ["system prompt, messages, variables of a stored prompt", "\u2013"]
    names = {one.get("name", {}).get("value") for one in page.accessible() if one.get("role", {}).get("value") in ("table", "columnheader")}
    assert {"What guards see, by body", "Guard", "Body", "Sees", "Does not see"} <= names
    keep(page, "guards")
    page.wait("document.querySelector('#view td, #view th') !== null")
    page.click("catalogue", "button.link")
    page.wait_text("This route has no guards.")
    page.click("Show all requests")
    page.wait(f"{ROWS}.length === {len(rows)}")
