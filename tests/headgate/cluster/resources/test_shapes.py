"""Schemas of resources from the tables of the file."""

from __future__ import annotations

import pytest

from headgate.cluster.resources import shapes
from headgate.config.shape import external, guard, upstream
from headgate.config.shape.scalars import BYTE_SIZE, CEL, HEADER_NAME, STRING
from headgate.config.shape.vocabulary import Anything, ListOf, MapOf, Object, Ref, maybe, optional, required
from headgate.document.fields import HEADER_NAME_PATTERN


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("failOpen", "FailOpen"), ("none", "None"), ("HTTP/2", "HTTP2"), ("grpc", "GRPC"), ("v1", "V1"), ("P-256", "P-256"),
        ("RS256", "RS256"), ("x5t#S256", "x5t#S256"), ("TLS_V1_2", "1.2"),
    ],
)  # fmt: skip
def test_words_are_spelled_as_resources_do(word: str, said: str) -> None:
    assert shapes.spelled(word) == said


def test_an_enum_has_the_words_of_the_file() -> None:
    assert shapes.words_of(external.FAIL) == {"type": "string", "enum": ["FailClosed", "FailOpen"]}
    assert shapes.words_of(external.FAIL, without=("failOpen",))["enum"] == ["FailClosed"]
    with pytest.raises(ValueError, match="FailureMode has no open"):
        shapes.words_of(external.FAIL, without=("open",))


def test_scalars_keep_their_limits() -> None:
    assert shapes.of(CEL) == {"type": "string", "minLength": 1, "maxLength": 16_384}
    assert shapes.of(HEADER_NAME)["pattern"] == HEADER_NAME_PATTERN
    assert shapes.of(STRING) == {"type": "string", "minLength": 1, "maxLength": shapes.MOST_CHARACTERS}
    with pytest.raises(ValueError, match="ByteSize is of several types"):
        shapes.of(BYTE_SIZE)


def test_lists_and_maps_without_a_limit_get_one() -> None:
    assert shapes.of(ListOf(STRING))["maxItems"] == shapes.MOST_ITEMS
    assert shapes.of(ListOf(STRING, least=2, most=3, unique=True)) == {
        "type": "array", "items": shapes.of(STRING), "minItems": 2, "maxItems": 3, "x-kubernetes-list-type": "set",
    }  # fmt: skip
    assert shapes.of(MapOf(Anything()))["maxProperties"] == shapes.MOST_ENTRIES


def test_an_object_has_its_fields_and_rules() -> None:
    shape = Object(
        "Thing", {"a": required(STRING), "b": optional(STRING), "c": maybe(STRING)}, one_of=("b", "c"), apart=(("a", "b"),)
    )
    found = shapes.of(Ref(lambda: shape))
    assert (list(found["properties"]), found["required"]) == (["a", "b", "c"], ["a"])
    messages = [one["message"] for one in found["x-kubernetes-validations"]]
    assert messages == ["exactly one of the fields in [b c] must be set", "at most one of the fields in [a b] may be set"]
    less = shapes.like(shape, {"a": {"type": "boolean"}}, without=("b",))
    assert less["properties"]["a"] == {"type": "boolean"}
    assert [one["message"] for one in less["x-kubernetes-validations"]] == ["exactly one of the fields in [c] must be set"]


def test_what_the_file_does_not_have_cannot_be_said_in_another_way() -> None:
    with pytest.raises(ValueError, match="RegexGuard has no patterns"):
        shapes.like(guard.REGEX_GUARD, {"patterns": {}})
    with pytest.raises(ValueError, match="has no tls"):
        shapes.like(upstream.TCP, without=("tls",))
    with pytest.raises(ValueError, match="BackendAuth is a union"):
        shapes.of(upstream.BACKEND_AUTH)
