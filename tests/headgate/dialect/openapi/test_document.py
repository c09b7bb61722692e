"""References within a document, and documents that are none."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.dialect.openapi.document import OpenApiError, parse, resolve

DOCUMENT: dict[str, Any] = {
    "a": {"b/c": {"d~e": {"found": 1}}, "list": [{"found": 2}], "again": {"$ref": "#/a/list/0"}},
    "loop": {"$ref": "#/loop"},
    "text": "x",
}


@pytest.mark.parametrize(
    ("reference", "found"), [("#/a/b~1c/d~0e", 1), ("#/a/list/0", 2), ("#/a/again", 2), ("#/a/b%7E1c/d~0e", 1)]
)
def test_pointers(reference: str, found: int) -> None:
    assert resolve(DOCUMENT, reference, "here") == {"found": found}


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("#/a/nope", "refers to nothing"),
        ("#/a/list/1", "refers to nothing"),
        ("#/a/list/x", "refers to nothing"),
        ("#/text", "does not refer to a map"),
        ("#/loop", "circular"),
        ("other.yaml#/a", "outside of the document"),
        ("file:///etc/passwd", "outside of the document"),
        ("#", "outside of the document"),
    ],
)
def test_references_that_lead_to_nothing(reference: str, reason: str) -> None:
    with pytest.raises(OpenApiError, match=f"here.*{reason}"):
        resolve(DOCUMENT, reference, "here")


def test_variables_of_the_environment_are_not_looked_at() -> None:
    assert parse("openapi: 3.0.0\nx: ${HOME}\n")["x"] == "${HOME}"


def test_yaml_that_begins_like_json_is_read_as_yaml() -> None:
    assert parse("{openapi: 3.0.0, paths: {}}")["paths"] == {}
