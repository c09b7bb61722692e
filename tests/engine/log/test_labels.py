"""Labels of request metrics."""

from __future__ import annotations

from headgate_engine.log.labels import label


def test_label_values_are_escaped() -> None:
    assert label("a", 'b\\"\n') == 'a="b\\\\\\"\\n"'
