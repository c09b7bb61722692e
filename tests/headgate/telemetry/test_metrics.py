"""The exposition format."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from headgate.telemetry.families import FAMILIES
from headgate.telemetry.metrics import PageForm, label_text, removed, render
from headgate_engine.shared.exemplars import FoundExemplar
from headgate_engine.shared.histogram import HistogramValue, NativeBuckets, Sample


def test_families_have_one_row_each_and_legal_names() -> None:
    names = [family.name for family in FAMILIES]
    assert len(names) == len(set(names))
    assert all(name.startswith("gw_") for name in names)
    assert all((family.kind == "counter") == family.name.endswith("_total") for family in FAMILIES)


def test_counters_and_histograms_are_rendered() -> None:
    page = render(
        [
            Sample("gw_requests_total", 'a="1"', "counter", 5),
            Sample("gw_request_duration_seconds", "", "histogram", HistogramValue((0.1, 1.0), (2, 1, 1), 3.5)),
            Sample("not_ours", "", "counter", 5),
        ]
    )
    assert '# TYPE gw_requests_total counter\ngw_requests_total{a="1"} 5\n' in page
    assert 'gw_request_duration_seconds_bucket{le="0.1"} 2\n' in page
    assert 'gw_request_duration_seconds_bucket{le="1"} 3\n' in page
    assert 'gw_request_duration_seconds_bucket{le="+Inf"} 4\n' in page
    assert "gw_request_duration_seconds_sum 3.5\ngw_request_duration_seconds_count 4\n" in page
    assert "not_ours" not in page


@pytest.mark.parametrize("name", ["gw_request_duration_seconds", "request_duration_seconds", "request_duration"])
def test_a_family_is_removed_by_any_of_its_names(name: str) -> None:
    assert removed("gw_request_duration_seconds", [name])
    assert not removed("gw_requests_total", [name])


def test_label_values_are_escaped() -> None:
    assert label_text({"a": 'x"y\\z\n'}) == r'a="x\"y\\z\n"'


def test_bounds_and_sums_have_all_their_digits() -> None:
    value = HistogramValue((0.00005, 1.0, 67108864.0), (1, 0, 0, 0), 123456789.125)
    page = render([Sample("gw_request_processing_seconds", "", "histogram", value)])
    assert [line.split('"')[1] for line in page.splitlines() if "_bucket" in line] == ["0.00005", "1", "67108864", "+Inf"]
    assert "gw_request_processing_seconds_sum 123456789.125\n" in page


def test_openmetrics_is_read_by_the_reference_parser() -> None:
    value = HistogramValue((0.00005, 1.0, 67108864.0), (1, 2, 0, 1), 123456789.125)
    page = render([
        Sample("gw_requests_total", 'a="x\\"y"', "counter", 5),
        Sample("gw_workers", "", "gauge", 2),
        Sample("gw_request_processing_seconds", 'b="1"', "histogram", value),
    ], form=PageForm(open=True))  # fmt: skip
    assert page.endswith("# EOF\n")
    found = {family.name: family for family in text_string_to_metric_families(page)}
    assert {name: family.type for name, family in found.items()} == {
        "gw_requests": "counter", "gw_workers": "gauge", "gw_request_processing_seconds": "histogram",
    }  # fmt: skip
    [requests] = found["gw_requests"].samples
    assert (requests.name, requests.labels, requests.value) == ("gw_requests_total", {"a": 'x"y'}, 5)
    assert [(one.labels["le"], one.value) for one in found["gw_request_processing_seconds"].samples if "le" in one.labels] == [
        ("0.00005", 1), ("1.0", 3), ("67108864.0", 3), ("+Inf", 4),
    ]  # fmt: skip


def test_native_histograms_alone_have_one_bucket_in_text() -> None:
    value = HistogramValue((0.1, 1.0), (2, 1, 1), 3.5, NativeBuckets(2.0**-20, 0, {0: 4}))
    page = render([Sample("gw_request_duration_seconds", "", "histogram", value)], form=PageForm(classic=False))
    assert [line for line in page.splitlines() if "_bucket" in line] == ['gw_request_duration_seconds_bucket{le="+Inf"} 4']
    assert "gw_request_duration_seconds_count 4\n" in page


@pytest.mark.parametrize("classic", [True, False])
def test_exemplars_are_read_by_the_reference_parser(classic: bool) -> None:
    marked = {0: FoundExemplar("1" * 32, "a" * 16, 0.05, 1700000000.25), 2: FoundExemplar("2" * 32, "b" * 16, 7.5, 1700000001.5)}
    value = HistogramValue((0.1, 1.0), (1, 0, 1), 7.55, NativeBuckets(2.0**-20, 0, {}), marked)
    sample = Sample("gw_request_duration_seconds", 'a="1"', "histogram", value)
    [family] = text_string_to_metric_families(render([sample], form=PageForm(open=True, classic=classic)))
    found = {one.labels["le"]: one.exemplar for one in family.samples if one.exemplar is not None}
    assert set(found) == ({"0.1", "+Inf"} if classic else {"+Inf"})
    last = found["+Inf"]
    assert last is not None
    assert (last.labels, last.value) == ({"trace_id": "2" * 32, "span_id": "b" * 16}, 7.5)
    assert " # {" not in render([sample]), "Prometheus' own text has no place for them"
