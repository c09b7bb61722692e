"""The page of metrics."""

from __future__ import annotations

from pathlib import Path

from headgate.telemetry.families import BUCKETS, FAMILIES
from headgate.telemetry.page import page


def test_the_committed_page_is_current() -> None:
    committed = Path(__file__).parents[3] / "docs/metrics.md"
    assert committed.read_text() == page(), "run: python -m headgate.telemetry.page > docs/metrics.md"


def test_every_family_is_there_once() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `gw_")]
    assert sorted(row.split("`")[1] for row in rows) == sorted(family.name for family in FAMILIES)


def test_histograms_have_known_buckets_and_others_none() -> None:
    assert all((family.kind == "histogram") == (family.buckets in BUCKETS) for family in FAMILIES)
