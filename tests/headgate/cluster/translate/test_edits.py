"""Rules, changes of headers and transformations."""

from __future__ import annotations

import pytest
from manifests import Json

from headgate.cluster.translate.edits import header_edits, pairs, rules, transformation

SET = [{"name": "x-a", "value": "1"}]


def test_names_with_values() -> None:
    assert pairs([*SET, {"name": "b", "value": "2"}]) == {"x-a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("value", "ours"),
    [
        ({"set": SET}, {"set": {"x-a": "1"}}),
        ({"add": SET, "remove": ["b"]}, {"add": {"x-a": "1"}, "remove": ["b"]}),
        ({"set": [], "remove": []}, {}),
    ],
)
def test_changes_of_headers(value: Json, ours: Json) -> None:
    assert header_edits(value) == ours


def test_transformations_have_expressions_beside_headers() -> None:
    said = {"request": {"set": SET, "body": "'b'", "metadata": {"m": "'1'"}}, "response": {"remove": ["x"]}}
    assert transformation(said) == {"request": {"set": {"x-a": "1"}, "body": "'b'", "metadata": {"m": "'1'"}}, "response": {"remove": ["x"]}}


@pytest.mark.parametrize(("action", "kind"), [(None, "allow"), ("Allow", "allow"), ("Deny", "deny"), ("Require", "require")])
def test_rules_have_the_kind_of_their_action(action: str | None, kind: str) -> None:
    said = {"policy": {"matchExpressions": ["true", "false"]}} | ({} if action is None else {"action": action})
    assert rules(said) == [{kind: "true"}, {kind: "false"}]
