"""Texts about the fields of resources: each has one, and none is about nothing."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.cluster.resources import explained as module
from headgate.cluster.resources import kinds
from headgate.cluster.resources.explained import explained, key_of, words
from headgate.config.field_text import texts

# `kubectl explain` has it in one line.
MOST_CHARACTERS = 120
SECTIONS = [(kind.name, name, getattr(kind, name)) for kind in kinds.KINDS for name in ("spec", "status")]


def fields(schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    for name, one in schema.get("properties", {}).items():
        yield (*path, name), one
        yield from fields(one, (*path, name))
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from fields(schema[inner], path)


@pytest.mark.parametrize(("kind", "name", "schema"), SECTIONS, ids=[f"{kind}.{name}" for kind, name, _ in SECTIONS])
def test_every_field_has_a_text(kind: str, name: str, schema: dict[str, Any]) -> None:
    every = list(fields(explained(schema, (kind, name)), (kind, name)))
    silent = {".".join(path[-2:]) for path, one in every if not one.get("description")}
    assert not silent, f"say what these are in headgate/cluster/resources/descriptions: {', '.join(sorted(silent))}"
    long = {one["description"] for _, one in every if len(one["description"]) > MOST_CHARACTERS}
    assert long == set()


def test_a_definition_has_them() -> None:
    for kind in kinds.KINDS:
        whole = kinds.definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert all(one["description"] for path, one in fields(whole, ()) if path != ("metadata",))


def test_no_text_is_about_a_field_that_is_not_there() -> None:
    used = {
        key_of(path) for kind, name, schema in SECTIONS for path, one in fields(schema, (kind, name)) if "description" not in one
    }
    assert words().keys() - used == set()


def test_texts_are_sentences() -> None:
    for name, text in words().items():
        assert text[0] == text[0].upper(), name
        assert text.endswith("."), name
        assert "`" not in text, name


def test_the_longest_key_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "words", lambda: {"name": "One.", "header.name": "Other.", "Kind.spec.name": "Third."})
    assert key_of(("Kind", "spec", "header", "name")) == "header.name"
    assert key_of(("Kind", "spec", "name")) == "Kind.spec.name"
    assert key_of(("Kind", "spec", "cookie", "name")) == "name"
    assert key_of(("Kind", "spec", "cookie")) == ""
    inner = {"properties": {"name": {"type": "string"}, "header": {"description": "Own.", "items": {"properties": {"name": {}}}}}}
    made = explained(inner, ("Kind", "spec"))["properties"]
    assert (made["name"]["description"], made["header"]["description"]) == ("Third.", "Own.")
    assert made["header"]["items"]["properties"]["name"] == {"description": "Other."}
    assert inner["properties"]["name"] == {"type": "string"}


def test_a_text_of_the_file_is_its_first_sentence() -> None:
    assert texts()["Retry"]["attempts"] == "Maximum number of retries. Default 1."
    assert words()["attempts"] == "Maximum number of retries."


def test_a_text_stands_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path in files("headgate.cluster.resources").joinpath("descriptions").iterdir():
        names = [key.value for key, _ in yaml.compose(path.read_text()).value]
        assert len(names) == len(set(names)), path.name
    (tmp_path / "descriptions").mkdir()
    for name in ("one", "other"):
        (tmp_path / "descriptions" / f"{name}.yaml").write_text("field: A field.\n")
    monkeypatch.setattr(module, "files", lambda _package: tmp_path)
    words.cache_clear()
    with pytest.raises(ValueError, match=r"other\.yaml: field is described twice"):
        words()
    words.cache_clear()
