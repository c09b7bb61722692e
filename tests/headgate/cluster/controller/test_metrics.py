"""Metrics of the controller."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from headgate.cluster.controller.metrics import MOST_SERIES, ControllerMetrics, Reconciliation


def values(metrics: ControllerMetrics) -> dict[str, float]:
    return {
        f"{one.name}{sorted(one.labels.items())}": one.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for one in family.samples
    }


def test_reconciliations_are_counted_and_timed() -> None:
    metrics = ControllerMetrics()
    about = Reconciliation("translator")
    metrics.ended(about, "success", metrics.began("translator"))
    metrics.ended(about, "error", metrics.began("translator") - 0.3)
    metrics.began("translator")
    labels = [("controller", "translator"), ("name", ""), ("namespace", "")]
    found = values(metrics)
    assert found[f"headgate_controller_reconciliations_total{sorted([*labels, ('result', 'success')])}"] == 1
    assert found[f"headgate_controller_reconciliations_total{sorted([*labels, ('result', 'error')])}"] == 1
    assert found["headgate_controller_reconciliations_running[('controller', 'translator')]"] == 1
    name = "headgate_controller_reconcile_duration_seconds"
    assert found[f"{name}_count{labels}"] == 2
    assert found[f"{name}_bucket{sorted([*labels, ('le', '0.25')])}"] == 1
    assert found[f"{name}_bucket{sorted([*labels, ('le', '0.5')])}"] == 2
    assert found[f"{name}_bucket{sorted([*labels, ('le', '+Inf')])}"] == 2
    assert found["headgate_controller_process_resident_memory_bytes[]"] > 1 << 20


def test_others_add_their_values_and_labels_are_escaped() -> None:
    metrics = ControllerMetrics()
    metrics.add("xds_rejects_total", "counter", "Rejections.", lambda: {(("gateway", 'a"b\\c\nd'),): 3})
    assert values(metrics)[f"headgate_xds_rejects_total{[('gateway', 'a' + chr(34) + 'b' + chr(92) + 'c' + chr(10) + 'd')]}"] == 3


def test_series_have_a_bound() -> None:
    metrics = ControllerMetrics()
    for number in range(MOST_SERIES + 10):
        metrics.counted(Reconciliation("status", f"n{number}", "s"), "success")
    found = [name for name in values(metrics) if "reconciliations_total" in name]
    assert len(found) == MOST_SERIES + 1
    labels = [("controller", "status"), ("name", "other"), ("namespace", "other"), ("result", "success")]
    assert values(metrics)[f"headgate_controller_reconciliations_total{labels}"] == 10
