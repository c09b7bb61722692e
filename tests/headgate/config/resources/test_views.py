"""Resources as they are shown."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.config.resources.kinds import KINDS
from headgate.config.resources.views import file_entries, restored, shown


@pytest.mark.parametrize(
    ("kind", "value", "view"),
    [
        ("llm.model", {"name": "m", "params": {"apiKey": "sk-1"}}, {"name": "m", "params": {"apiKey": "<redacted>"}}),
        ("llm.model", {"name": "m", "params": {"apiKey": "${KEY}"}}, {"name": "m", "params": {"apiKey": "${KEY}"}}),
        ("llm.apiKey", {"key": "sk-1", "metadata": {"name": "bob"}}, {"key": "<redacted>", "metadata": {"name": "bob"}}),
        ("llm.policy", {"apiKey": {"keys": [{"key": "sk-1"}]}}, {"apiKey": {"keys": [{"key": "<redacted>"}]}}),
        ("traffic.gateway", {"name": "g", "port": 1}, {"name": "g", "port": 1}),
        ("traffic.gateway", {"port": 1}, {"port": 1}),
        ("mcp.settings", {"port": 1}, {"port": 1}),
    ],
)
def test_secrets_are_hidden_by_the_shape_of_the_file(kind: str, value: Any, view: Any) -> None:
    assert shown(KINDS[kind], value) == view


def test_marks_get_their_secrets_back() -> None:
    kind, held = KINDS["llm.model"], {"name": "m", "params": {"apiKey": "sk-1", "model": "x"}}
    value = {"name": "m", "params": {"model": "y", "apiKey": "<redacted>"}}
    assert restored(kind, value, held) == ([], {"name": "m", "params": {"model": "y", "apiKey": "sk-1"}})
    lost, _ = restored(kind, value, None)
    assert [one.partition(":")[0] for one in lost] == ["params.apiKey"]


def test_the_file_is_listed_with_paths_for_what_has_no_name() -> None:
    text = "routes: [{name: a}, {}]\nconfig: {modelCatalog: [{file: x}]}\n"
    assert [one["id"] for one in file_entries(KINDS["traffic.route"], text, "f")] == ["a", "routes[1]"]
    assert file_entries(KINDS["modelCatalog"], text, "f") == [{"kind": "modelCatalog", "id": "config.modelCatalog[0]", "value": {"file": "x"}}]
