"""The parts of a structural schema."""

from __future__ import annotations

import pytest

from headgate.cluster.resources import schema


def test_texts_and_numbers_have_their_limits() -> None:
    assert schema.text(0, 5) == {"type": "string", "maxLength": 5}
    assert schema.text(1, 5, "^a", "uri") == {
        "type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a", "format": "uri",
    }  # fmt: skip
    assert schema.integer(1, 5) == {"type": "integer", "format": "int32", "minimum": 1, "maximum": 5}
    assert schema.integer(0, 2**31)["format"] == "int64"
    assert "maximum" not in schema.integer(0, 2**63 - 1)


def test_lists_are_sets_maps_or_neither() -> None:
    item = schema.text(1, 5)
    assert schema.listed(item, 0, 3)["x-kubernetes-list-type"] == "atomic"
    assert schema.listed(item, 0, 3, unique=True)["x-kubernetes-list-type"] == "set"
    keyed = schema.listed(schema.record({"name": item}, required=("name",)), 1, 3, key="name")
    assert (keyed["x-kubernetes-list-type"], keyed["x-kubernetes-list-map-keys"], keyed["minItems"]) == ("map", ["name"], 1)


def test_a_required_field_is_a_field() -> None:
    assert schema.record({"a": schema.flag()}, required=("a",))["required"] == ["a"]
    with pytest.raises(KeyError):
        schema.record({"a": schema.flag()}, required=("b",))


def test_rules_add_up_and_leave_the_first_schema_alone() -> None:
    first = schema.record({"a": schema.flag()}, rules=(schema.rule("self.a", "a"),))
    both = schema.ruled(first, schema.rule("true", "b"))
    assert [one["message"] for one in both["x-kubernetes-validations"]] == ["a", "b"]
    assert len(first["x-kubernetes-validations"]) == 1
    assert "x-kubernetes-validations" not in schema.ruled(schema.nothing())


def test_names_that_cel_reserves_are_escaped() -> None:
    assert schema.has("namespace") == "has(self.__namespace__)"
    assert schema.has("name", "t") == "has(t.name)"


def test_words_about_several_fields() -> None:
    count = "[has(self.a), has(self.b)].filter(x, x).size()"
    assert schema.exactly_one("a", "b") == {
        "rule": f"{count} == 1", "message": "exactly one of the fields in [a b] must be set",
    }  # fmt: skip
    assert schema.at_most_one("a", "b")["rule"] == f"{count} <= 1"
    assert schema.at_least_one("a", "b")["rule"] == f"{count} >= 1"
    assert schema.excludes("a", "b", "c")["rule"] == "!has(self.a) || !(has(self.b) || has(self.c))"
    assert schema.needs("a", "b") == {"rule": "!has(self.a) || has(self.b)", "message": "a needs b"}
