"""The exported JSON schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from headgate.config.schema import Exporter, main, printed, schema
from headgate.config.shape.scalars import STRING
from headgate.config.shape.vocabulary import Object, optional

COMMITTED = Path(__file__).parents[3] / "docs/schema/config.schema.json"


def test_the_committed_schema_is_current() -> None:
    assert COMMITTED.read_text() == printed(), (
        "run: python -m headgate.config.schema docs/schema/config.schema.json"
    )


def test_the_schema_is_a_valid_schema_without_loose_references() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    text = printed()
    names = set(schema()["$defs"])
    for part in text.split('"$ref": "#/$defs/')[1:]:
        assert part.split('"')[0] in names


def test_unbuilt_fields_say_so_to_editors() -> None:
    unbuilt = schema()["$defs"]["ProcessSettings"]["properties"]["xdsAddress"]
    assert "not supported yet" in unbuilt["description"]


@pytest.mark.parametrize(
    ("document", "valid"),
    [
        ({"gateways": {"a": {"port": 3000}}}, True),
        ({"gateways": {"a": {"port": "${PORT}"}}}, True),
        ({"gateways": {"a": {"port": "3000"}}}, False),
        ({"routes": [{"policies": {"timeout": {"requestTimeout": "${T}s"}}}]}, True),
        ({"routes": [{"policies": {"timeout": {"requestTimeout": "soon"}}}]}, False),
        ({"routes": [{"backends": [{"host": "a:1", "mcp": {}}]}]}, False),
        ({"nope": 1}, False),
    ],
)
def test_the_schema_judges_documents(document: object, valid: bool) -> None:
    assert jsonschema.Draft202012Validator(schema()).is_valid(document) is valid


def test_two_shapes_cannot_share_a_name() -> None:
    exporter = Exporter()
    exporter.shape(Object("Same", {"a": optional(STRING)}))
    exporter.shape(Object("Same", {"a": optional(STRING)}))
    with pytest.raises(ValueError, match="Same"):
        exporter.shape(Object("Same", {"b": optional(STRING)}))


def test_the_command_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.json"
    assert main([str(path)]) == 0
    assert path.read_text() == printed()
    assert main([]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
