"""What two reports tell beyond noise."""

from __future__ import annotations

import random

import pytest
from tests.headgate.capacity.report.report_rig import report, step

from headgate.capacity.errors import BenchError
from headgate.capacity.report.comparison import compare, comparison_text
from headgate.capacity.saturation import SearchResult


def verdicts(first: dict, second: dict) -> dict[str, str]:
    return {one.figure.name: one.verdict for one in compare(first, second)}


def test_equal_reports_do_not_differ() -> None:
    one = report(step())
    assert set(verdicts(one, one).values()) == {"same"}


def test_seconds_tell_the_noise_of_a_single_run() -> None:
    found = verdicts(report(step()), report(step(factor=1.5)))
    assert found["p50"] == found["p99"] == "worse"
    assert found["answered"] == "same"
    # These are told once in each report.
    assert found["first token p50"] == found["CPU of the target"] == "unsure"
    assert verdicts(report(step(factor=1.5)), report(step()))["p50"] == "better"


def test_a_difference_within_the_noise_is_none() -> None:
    noisy = verdicts(report(step(jitter=0.5)), report(step(factor=1.2, jitter=0.5)))
    assert noisy["p50"] == "same"
    assert verdicts(report(step(jitter=0.01)), report(step(factor=1.2, jitter=0.01)))["p50"] == "worse"


def test_repetitions_tell_the_noise() -> None:
    chance = random.Random(1)
    before = report(*(step(factor=1 + chance.random() / 50) for _ in range(6)))
    same = report(*(step(factor=1 + chance.random() / 50) for _ in range(6)))
    slower = report(*(step(factor=1.1 + chance.random() / 50) for _ in range(6)))
    assert set(verdicts(before, same).values()) == {"same"}
    found = verdicts(before, slower)
    assert {name for name, verdict in found.items() if verdict == "worse"} == {
        "p50", "p90", "p99", "first token p50", "first token p99", "CPU of the target",
    }  # fmt: skip


def test_rates_are_compared_one_by_one() -> None:
    found = compare(report(step(100), step(200)), report(step(200), step(300)))
    assert {one.rate for one in found} == {200}
    with pytest.raises(BenchError, match="no rate in common"):
        compare(report(step(100)), report(step(200)))


def test_reports_of_different_loads_are_refused() -> None:
    with pytest.raises(BenchError, match="connections is 4 and 5"):
        compare(report(step()), report(step(), connections=5))


def test_the_text_says_it() -> None:
    text = comparison_text(report(step(), found=SearchResult([], 100.0, "x")), report(step(factor=2), found=SearchResult([], None, "x")))
    assert "at 100 a second\n" in text
    assert "p50" in text
    assert "+100.0%  worse" in text
    assert "use --repeat" in text
    assert "saturation: 100 a second and none" in text
