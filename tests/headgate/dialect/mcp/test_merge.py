"""Results of several servers as one."""

from __future__ import annotations

from typing import Any

from headgate.dialect.mcp import merge

INFO = {"name": "headgate"}


def result(version: str = "2025-06-18", instructions: str | None = None, **capabilities: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "x"}}
    return found if instructions is None else {**found, "instructions": instructions}


def test_the_lowest_version_counts() -> None:
    two = {"a": result("2025-06-18"), "b": result("2025-11-25")}
    assert merge.initialize(two, "2025-11-25", INFO)["protocolVersion"] == "2025-06-18"
    assert merge.initialize(two, "2025-03-26", INFO)["protocolVersion"] == "2025-03-26"
    assert merge.initialize(two, None, INFO)["protocolVersion"] == "2025-06-18"


def test_capabilities_add_up() -> None:
    found = merge.capabilities([
        {"tools": {}, "resources": {"subscribe": True}, "logging": {}, "extensions": {"x": {"a": 1}, "y": {}}},
        {"tools": {"listChanged": True}, "prompts": {"listChanged": False}, "extensions": {"x": {"a": 2}}},
        None,
        {"tools": True, "resources": {"listChanged": 1}},
    ])
    assert found == {
        "tools": {"listChanged": True},
        "prompts": {},
        "resources": {"subscribe": True},
        "logging": {},
        "extensions": {"x": {}, "y": {}},
    }


def test_instructions_are_told_with_their_target() -> None:
    said = merge.initialize({"a": result(instructions="A."), "b": result(), "c": result(instructions="")}, None, INFO)
    assert said["instructions"] == f"{merge.PREAMBLE}\n\n[a]\nA."
    assert "instructions" not in merge.initialize({"a": result()}, None, INFO)


def test_names_of_several_targets_belong_to_nobody() -> None:
    lists = {"a": [{"name": "x"}, {"name": "y"}, {"name": "y"}], "b": [{"name": "x"}, {"name": "z"}]}
    assert merge.without_doubles(lists, "name") == {"a": [{"name": "y"}, {"name": "y"}], "b": [{"name": "z"}]}
