"""Results of several servers as one."""

from __future__ import annotations

import json
from typing import Any

from headgate.dialect.mcp import merge
from headgate.dialect.mcp.jsonrpc import parse
from headgate_engine.peek.items import Item, list_of

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
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "logging": {},
        "extensions": {"x": {}, "y": {}},
    }
    nothing = merge.capabilities([{}, None])
    assert nothing == {name: {"listChanged": True} for name in ("tools", "prompts", "resources")}


def test_instructions_are_told_with_their_target() -> None:
    said = merge.initialize({"a": result(instructions="A."), "b": result(), "c": result(instructions="")}, None, INFO)
    assert said["instructions"] == f"{merge.PREAMBLE}\n\n[a]\nA."
    assert "instructions" not in merge.initialize({"a": result()}, None, INFO)


def test_names_of_several_targets_belong_to_nobody() -> None:
    def items(*names: str) -> list[Item]:
        result = {"tools": [{"name": name} for name in names]}
        return list_of(parse(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()), b"tools", b"name")[1]

    lists = {"a": items("x", "y", "y"), "b": items("x", "z")}
    assert merge.owners(lists) == {"x": None, "y": "a", "z": "b"}
