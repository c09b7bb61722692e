"""Kinds of stored resources: their places in the file, and the ids of their values."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.config.resources.kinds import KINDS, InvalidResource, identity, items, resource_id, shape_of, value_shape
from headgate.config.shape.vocabulary import ListOf, MapOf, Object

# The list of the reference, and virtual keys.
NAMES = {
    "modelCatalog", "llm.provider", "llm.model", "llm.virtualModel", "llm.apiKey", "llm.policy", "mcp.target", "mcp.policy",
    "mcp.settings", "traffic.gateway", "traffic.route", "traffic.tcpRoute", "ui.policy", "virtualKeys.key", "virtualKeys.team",
}  # fmt: skip


def test_every_kind_has_a_place_in_the_file_that_fits_its_form() -> None:
    assert set(KINDS) == NAMES
    wanted = {"item": ListOf, "entry": MapOf, "field": Object, "fields": Object}
    for kind in KINDS.values():
        assert isinstance(shape_of(kind), wanted[kind.form]), kind.name
        for names in kind.names if kind.form == "item" else ():
            shape = value_shape(kind)
            assert isinstance(shape, Object)
            assert names[0] in shape.fields, kind.name
    settings = shape_of(KINDS["mcp.settings"])
    assert isinstance(settings, Object)
    assert set(KINDS["mcp.settings"].fields) == settings.fields.keys() - {"targets", "policies"}


@pytest.mark.parametrize(
    ("kind", "value", "given", "found"),
    [
        ("llm.model", {"name": "a/b"}, None, "a/b"),
        ("llm.model", {"id": "x", "name": "a"}, None, "x"),
        ("llm.policy", {"cors": {}}, None, "cors"),
        ("llm.apiKey", {"key": "k", "metadata": {"name": "bob"}}, None, "bob"),
        ("llm.apiKey", {"key": "k", "metadata": {"name": "bob", "id": "7"}}, None, "7"),
        ("llm.apiKey", {"key": "k"}, "any", "any"),
        ("mcp.settings", {"port": 1}, None, "default"),
        ("modelCatalog", {"inline": {}}, None, "default"),
        ("modelCatalog", {"inline": {}}, "mine", "mine"),
        ("traffic.gateway", {"port": 1}, "g", "g"),
        ("traffic.route", {"name": "a", "namespace": "n"}, None, "n/a"),
    ],
)
def test_the_id_is_that_of_the_value_or_the_given_one(kind: str, value: Any, given: str | None, found: str) -> None:
    assert resource_id(KINDS[kind], value, given) == found


@pytest.mark.parametrize(
    ("kind", "value", "given"),
    [
        ("llm.model", {}, None), ("llm.model", "text", "a"), ("llm.model", {"name": "a"}, "b"), ("traffic.route", {}, "a"),
        ("llm.policy", {}, "cors"), ("llm.policy", {"cors": {}}, "csrf"), ("llm.apiKey", {"key": "k"}, None),
        ("mcp.settings", {"port": 1}, "other"), ("mcp.settings", {"targets": []}, None), ("llm.model", {"name": "a" * 600}, None),
        ("llm.model", {"name": "a\nb"}, None),
    ],
)  # fmt: skip
def test_a_value_whose_id_is_not_certain_is_refused(kind: str, value: Any, given: str | None) -> None:
    with pytest.raises(InvalidResource):
        resource_id(KINDS[kind], value, given)


def test_the_resources_of_a_file_are_found_with_their_ids() -> None:
    document = {
        "gateways": {"g": {"port": 1}}, "routes": [{"name": "a"}, {}],
        "mcp": {"targets": [{"name": "t"}], "port": 3, "policies": {"cors": {}}},
    }  # fmt: skip
    found = {name: list(items(kind, document)) for name, kind in KINDS.items()}
    assert found["traffic.gateway"] == [("g", {"name": "g", "port": 1})]
    assert found["traffic.route"] == [("a", {"name": "a"}), (None, {})]
    assert found["mcp.settings"] == [("default", {"port": 3})]
    assert found["mcp.policy"] == [("cors", {"cors": {}})]
    assert found["llm.model"] == found["ui.policy"] == []
    assert identity(KINDS["llm.model"], {"name": 3}) is None
