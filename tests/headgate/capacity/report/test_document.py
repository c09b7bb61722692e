"""The report as JSON keeps to its schema, which says what each member means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.headgate.capacity.report.report_rig import report, step

from headgate.capacity.errors import BenchError
from headgate.capacity.figures import StepFigures
from headgate.capacity.report.document import read
from headgate.capacity.saturation import SearchResult

SCHEMA = json.loads((Path(__file__).parents[4] / "docs/schema/bench-report.schema.json").read_text())


def fine(document: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(document)))


def test_reports_keep_to_the_schema() -> None:
    fine(report(step(), step(0.0, failed=3)))
    fine(report(step(100), step(200, verdict="p99"), found=SearchResult([], 100.0, "p99")))
    fine(report(step(100, verdict="bad"), found=SearchResult([], None, "bad")))
    nothing = StepFigures(10.0, 1.0)
    fine(report(nothing))
    with pytest.raises(jsonschema.ValidationError):
        fine({**report(step()), "other": 1})


def test_the_figures_of_a_step() -> None:
    one = report(step(failed=25))["steps"][0]
    assert (one["rate"], one["achieved"], one["good"], one["failed"]) == (100, 100, 500, 25)
    assert one["error_share"] == pytest.approx(25 / 525, abs=1e-6)
    assert one["latency_ms"]["p50"] == pytest.approx(10, rel=0.01)
    assert one["latency_ms"]["max"] == 102
    assert one["first_token_ms"]["p99"] == pytest.approx(2, rel=0.01)
    assert one["tokens"] == {"count": 5000, "per_second": 1000}
    assert one["target"] == {"cpu_s": 1.5, "processors": 0.3, "processes": 3, "cpu_us_per_request": 2857.14, "peak_mb": 50}
    assert sum(count for _, count in one["histogram_ns"]) == 500


def described(schema: dict[str, Any], place: str = "") -> Iterator[str]:
    """The places of members without a description."""
    for name, member in schema.get("properties", {}).items():
        if place != ".steps.series_ms" and "description" not in member:
            yield f"{place}.{name}"
        yield from described(member, f"{place}.{name}")
    if "items" in schema:
        yield from described(schema["items"], place)


def test_every_member_is_described() -> None:
    assert list(described(SCHEMA)) == []


def test_a_report_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    document = json.loads(json.dumps(report(step())))
    path.write_text(json.dumps(document))
    assert read(str(path)) == document


@pytest.mark.parametrize(("text", "words"), [("{", "no JSON"), ("[]", "no report"), ('{"format": "other"}', "no report")])
def test_what_is_no_report_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(BenchError, match=words):
        read(str(path))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="No such file"):
        read(str(tmp_path / "none"))
