"""What is chosen where nothing was said."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.capacity.errors import BenchError
from headgate.capacity.measurement import Measurement, MeasurementPlan, chosen_tool

TOOLS: list[dict[str, Any]] = [
    {"name": "plain", "inputSchema": {"type": "object"}},
    {
        "name": "typed",
        "inputSchema": {
            "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "string"}, "d": {"type": "array"}},
            "required": ["a", "b", "d"],
        },
    },
    {"name": "odd", "inputSchema": {"required": ["x"]}},
]


def test_the_first_tool_is_called() -> None:
    assert chosen_tool(TOOLS, None, None) == ("plain", {})
    assert chosen_tool(TOOLS, None, {"own": 1}) == ("plain", {"own": 1})


def test_required_arguments_have_values_of_their_types() -> None:
    assert chosen_tool(TOOLS, "typed", None) == ("typed", {"a": "text", "b": 1, "d": []})


@pytest.mark.parametrize(("tools", "name", "words"), [
    (TOOLS, "other", "no tool other; it has plain, typed, odd"), ([], None, "no tools"), (TOOLS, "odd", "--arguments"),
])  # fmt: skip
def test_what_cannot_be_chosen_is_told(tools: list[dict[str, Any]], name: str | None, words: str) -> None:
    with pytest.raises(BenchError, match=words):
        chosen_tool(tools, name, None)


def test_a_file_needs_a_url() -> None:
    with pytest.raises(BenchError, match="URL"):
        Measurement(MeasurementPlan(file="x.yaml"), lambda tick: None, lambda step: None).run()
