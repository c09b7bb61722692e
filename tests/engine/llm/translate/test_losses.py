"""What is lost of a request, by a tree of paths."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_engine.llm.translate.losses import lost_below

TREE: dict[str, Any] = {
    "a": ("a", False, {"b": ("a.b", False, {})}),
    "list": ("", True, {"x": ("list[].x", False, {}), "deep": ("", True, {"y": ("list[].deep[].y", False, {})})}),
    "object": ("", False, {"z": ("object.z", False, {})}),
}


@pytest.mark.parametrize(
    ("holder", "expected"),
    [
        ({}, []),
        ({"a": None, "list": None, "object": {"z": None}}, []),
        ({"a": {"b": 1}, "other": 2}, ["a", "a.b"]),
        ({"a": "spared"}, []),
        ({"a": "spared", "object": {"z": 0}}, ["object.z"]),
        ({"list": {"x": 1}, "object": [{"z": 1}]}, []),
        ({"list": [{"x": 1}, 5, {}, {"deep": [{"y": 1}, {"y": 2}], "x": 3}]}, ["list[0].x", "list[3].x", "list[3].deep[0].y", "list[3].deep[1].y"]),
        ({"object": {"z": 1, "free": True}}, []),
    ],
)
def test_lost_members_are_told_by_their_paths(holder: dict[str, Any], expected: list[str]) -> None:
    spared = {"a": ("spared",), "object.z": (7,)}
    assert lost_below(TREE, holder, spared, {"object.z": lambda one: "free" in one}) == expected


def test_an_exception_may_fail() -> None:
    def fails(_holder: dict[str, Any]) -> bool:
        raise KeyError("no")

    with pytest.raises(KeyError):
        lost_below(TREE, {"a": 1}, {}, {"a": fails})
