"""Label selectors."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.cluster.translate.selectors import selects


def about(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "a", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "labels", "met"),
    [
        ({}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1", "b": "1"}}, {"a": "1", "b": "2"}, False),
        (about("In", "1", "2"), {"a": "2"}, True),
        (about("In", "1"), {}, False),
        (about("NotIn", "1"), {}, True),
        (about("NotIn", "1"), {"a": "1"}, False),
        (about("Exists"), {"a": ""}, True),
        (about("Exists"), {}, False),
        (about("DoesNotExist"), {}, True),
        (about("DoesNotExist"), {"a": ""}, False),
        (about("Gt", "1"), {"a": "2"}, False),
    ],
)
def test_labels_meet_a_selector(selector: dict[str, Any], labels: dict[str, str], met: bool) -> None:
    assert selects(selector, labels) is met
