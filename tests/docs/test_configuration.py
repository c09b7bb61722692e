"""The reference of the configuration file: made from the loader's tables, with examples from documents and `examples/`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from headgate.config.load import TextSource, load
from headgate.config.shape.root import ROOT

HOME = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("config_reference", HOME / "ci/config_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_page_is_current(reference: ModuleType) -> None:
    assert (HOME / "docs/configuration.md").read_text() == reference.page(), "run: make reference"


def test_examples_are_of_their_objects(reference: ModuleType) -> None:
    """Each field of an example is one of the object above it, and the whole file's example loads."""
    found: dict[str, object] = {}
    reference.objects(ROOT, found)
    shown = reference.examples()
    assert len(shown) > 150
    for name, text in shown.items():
        owner = found[name]
        assert yaml.safe_load(text).keys() <= owner.fields.keys() | owner.aliases.keys()  # type: ignore[attr-defined]
    load(TextSource(shown[ROOT.name]), environ={})


def test_no_type_is_unknown(reference: ModuleType) -> None:
    assert "integer None" not in reference.page()
