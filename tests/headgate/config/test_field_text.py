"""Texts about the fields of the file."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest
import yaml

from headgate.config import field_text as module
from headgate.config.field_text import ANYWHERE, field_text, texts
from headgate.config.schema import schema
from headgate.config.shape.scalars import STRING
from headgate.config.shape.vocabulary import Object, optional


def objects() -> dict[str, dict[str, Any]]:
    """The properties of the schema by the name of their object."""
    whole = schema()
    found = {"Headgate": whole["properties"]}
    return found | {name: one["properties"] for name, one in whole["$defs"].items() if "properties" in one}


def test_every_field_of_the_file_has_a_text() -> None:
    silent = [f"{owner}.{name}" for owner, fields in objects().items() for name, one in fields.items() if "description" not in one]
    assert not silent, f"say what these are in headgate/config/descriptions: {', '.join(silent)}"


def test_no_text_is_about_a_field_that_is_not_there() -> None:
    known = objects()
    stale = [f"{owner}.{name}" for owner, fields in texts().items() if owner != ANYWHERE for name in fields if name not in known.get(owner, {})]
    everywhere = {name for owner, fields in known.items() for name in fields if name not in texts().get(owner, {})}
    assert stale + sorted(texts()[ANYWHERE].keys() - everywhere) == []


def test_texts_are_sentences() -> None:
    for owner, fields in texts().items():
        for name, text in fields.items():
            assert isinstance(text, str), f"{owner}.{name} is no text: put quotes around it"
            assert text[0] == text[0].upper() or text[0] == '`', f"{owner}.{name}"
            assert text.endswith("."), f"{owner}.{name}"
            assert text.count("`") % 2 == 0, f"{owner}.{name}"


def test_a_text_stands_once() -> None:
    for path in files("headgate.config").joinpath("descriptions").iterdir():
        nodes = yaml.compose(path.read_text()).value
        for key, fields in nodes:
            names = [name.value for name, _ in fields.value if name.value != "<<"]
            assert len(names) == len(set(names)), key.value


def test_another_spelling_says_of_what_and_an_unknown_field_is_silent() -> None:
    owner = Object("Thing", {"long": optional(STRING)}, aliases={"short": "long"})
    assert field_text(owner, "short") == "Another spelling of `long`."
    assert field_text(owner, "long") == ""


def test_an_object_is_described_in_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "descriptions").mkdir()
    for name in ("one", "other"):
        (tmp_path / "descriptions" / f"{name}.yaml").write_text("Thing: {field: A field.}\n")
    monkeypatch.setattr(module, "files", lambda _package: tmp_path)
    texts.cache_clear()
    with pytest.raises(ValueError, match=r"other\.yaml: Thing is described twice"):
        texts()
    texts.cache_clear()
