"""The report as a page: complete by itself, and well-formed."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from tests.headgate.capacity.report.report_rig import report, step

from headgate.capacity.figures import StepFigures
from headgate.capacity.report.page import page
from headgate.capacity.saturation import SearchResult

SEARCH = [step(rate, factor=rate / 100, verdict="too slow" if rate > 400 else "") for rate in (100, 200, 400, 800)]
PAGES = {
    "one": report(step(failed=3)),
    "repeated": report(step(), step(factor=1.1)),
    "search": report(*SEARCH, found=SearchResult(SEARCH, 400.0, "too slow")),
    "no-knee": report(SEARCH[-1], found=SearchResult([], None, "too slow")),
    "nothing": report(StepFigures(10.0, 1.0)),
}


class Balance(HTMLParser):
    """Whether elements are closed in their order."""

    VOID = ("meta",)

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_complete_by_itself(name: str) -> None:
    text = page(PAGES[name])
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert re.findall(r"<script|\bsrc=|\bhref=|url\(|@import|nan|inf\b", text) == []
    assert "prefers-color-scheme:dark" in text
    assert "&lt;v1&gt;" in text
    assert "<v1>" not in text


def test_a_search_shows_its_knee() -> None:
    text = page(PAGES["search"])
    for words in ("Latency by rate", "Answers by rate", "CPU of the target by rate", "Latency by percentile", "<b>400/s</b>carried at most", "beyond it: too slow"):
        assert words in text
    assert "Latency by second" not in text


def test_one_rate_shows_its_seconds_and_errors() -> None:
    text = page(PAGES["one"])
    for words in ("Latency by second", "Answers by second", "<h2>Tokens</h2>", "status &lt;503&gt;"):
        assert words in text


def test_why_a_step_has_failed_stands_in_a_row_of_its_own() -> None:
    found = page(report(*SEARCH, found=SearchResult([], 400.0, "too slow")))
    assert re.findall(r'<tr><td colspan="(\d+)"><div class="bad left">(.*?)</div></td></tr>', found) == [("11", "too slow")]
    assert found.count("<th>", found.index("<h2>Steps"), found.index("</thead>", found.index("<h2>Steps"))) == 11
