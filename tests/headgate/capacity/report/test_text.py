"""The report as text."""

from __future__ import annotations

import pytest
from tests.headgate.capacity.report.report_rig import report, step

from headgate.capacity.figures import StepFigures
from headgate.capacity.report.page import page
from headgate.capacity.report.text import ms, report_text, told_step
from headgate.capacity.saturation import SearchResult


@pytest.mark.parametrize(("value", "text"), [(0.0123, "12.3 us"), (1, "1 ms"), (12.345, "12.3 ms"), (999, "999 ms"), (1500, "1.5 s"), (2_000_000, "2,000 s")])
def test_times_have_three_digits(value: float, text: str) -> None:
    assert ms(value) == text


def test_one_step_is_told_in_full() -> None:
    text = report_text(report(step(failed=7)))
    for words in (
        "stream: POST http://127.0.0.1:3000/<v1>\n", "HTTP/2, 4 connections of 8 streams", "100.0 a second answered, 100 a second asked, 500 good, 7 failed",
        "first token", "between tokens", "1,000 a second", "7 x status <503>", "0.30 processors, 2,958.6 us of CPU a request, 50 MB in 3 processes",
        "4% of a processor",
    ):  # fmt: skip
        assert words in text


def test_the_saturation_is_told_with_the_step_at_the_knee() -> None:
    text = report_text(report(step(100), step(200), step(400, verdict="p99 of 9 s"), found=SearchResult([], 200.0, "p99 of 9 s")))
    assert "saturation: 200 requests a second are carried; beyond them: p99 of 9 s\n" in text
    assert "at 200 a second:" in text
    assert text.count("p99 of 9 s") == 2
    assert "not even the first rate was carried: x" in report_text(report(step(1, verdict="x"), found=SearchResult([], None, "x")))
    assert "no bound was met" in report_text(report(step(1), step(2), found=SearchResult([], 2.0, "")))


def test_nothing_was_answered() -> None:
    text = report_text(report(StepFigures(0.0, 1.0)))
    assert "as fast as connections allow" in text
    assert "latency" not in text


# Of a search that begins at one request a second, as for a model of somebody else.
SLOW = [step(rate, verdict="too slow" if rate > 4 else "") for rate in (1.0, 1.5, 2.25, 3.375, 5.0625)]


@pytest.mark.parametrize("knee", [1.0, 1.5, 2.25, 3.375])
def test_the_step_of_a_small_knee_is_found(knee: float) -> None:
    document = report(*SLOW, found=SearchResult(SLOW, knee, "too slow"))
    assert told_step(document)["rate"] == knee
    assert page(document)
    assert told_step(report(*SLOW, found=SearchResult(SLOW, None, "too slow")))["rate"] == 5.062
