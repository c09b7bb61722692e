"""`config.modelCatalog`: sources in their order, and faults with the place where they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.config.dump import Runtime, dump
from headgate.config.load import FileSource, LoadErrors, load
from headgate.ir.price_catalog import PriceCatalog

INLINE = "inline: {providers: {p: {models: {m: {rates: {input: '1', output: '2'}}}}}}"
Loaded = tuple[PriceCatalog | None, tuple[str, ...], tuple[str, ...]]


@pytest.fixture
def prices(tmp_path: Path) -> Callable[..., Loaded]:
    """`prices(*sources, environ={})` loads a file with them; gives catalog, watched files, warnings."""

    def start(*sources: str, environ: dict[str, str] | None = None) -> Loaded:
        path = tmp_path / "config.yaml"
        lines = "".join(f"\n  - {source}" for source in sources)
        path.write_text(f"config:\n  modelCatalog:{lines or ' []'}\n")
        found = load(FileSource(str(path)), environ=environ or {})
        shown = dump(found.gateway, Runtime(generation=1, workers=1))["config"].get("modelCatalog")
        assert (shown is None) is (found.gateway.process.prices is None)
        return found.gateway.process.prices, found.watched_files, found.warnings

    return start


def rates(found: PriceCatalog | None, provider: str = "p", model: str = "m") -> dict[str, int]:
    assert found is not None
    assert found.document is not None
    told: dict[str, int] = json.loads(found.document)[provider][model]["rates"]
    return told


def test_none_is_none(prices) -> None:
    assert prices()[0] is None


def test_sources_are_merged_in_their_order(prices, tmp_path: Path) -> None:
    (tmp_path / "prices.json").write_text('{"providers": {"p": {"models": {"m": {"rates": {"output": "3"}}}}}}')
    found, watched, _ = prices(INLINE, "file: prices.json")
    assert rates(found) == {"input": 1_000_000, "output": 3_000_000}
    assert watched[1:] == (str(tmp_path / "prices.json"),) == found.files
    other, _, _ = prices("file: prices.json", INLINE)
    assert rates(other) == {"input": 1_000_000, "output": 2_000_000}
    assert found.version != other.version
    text = json.dumps(json.dumps({"providers": {"p": {"models": {"m": {"rates": {"input": "1", "output": "2"}}}}}}))
    assert prices(f"inline: {text}")[0].version == other.version


def test_a_file_that_is_not_there_is_passed_over_and_watched(prices, tmp_path: Path) -> None:
    found, watched, warnings = prices(INLINE, "file: none.json")
    assert rates(found)["input"] == 1_000_000
    assert str(tmp_path / "none.json") in watched
    assert any("none.json" in warning for warning in warnings)
    nothing, _, _ = prices("file: none.json")
    assert (nothing.document, nothing.version) == (None, "")


def test_the_variable_replaces_the_list(prices, tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    one.write_text('{"providers": {"p": {"models": {"m": {"rates": {"input": "7"}}}}}}')
    two.write_text('{"providers": {"p": {"models": {"m": {"rates": {"output": "8"}}}}}}')
    found, _, _ = prices(INLINE, environ={"MODEL_CATALOG_PATHS": f"{one}, {two}"})
    assert rates(found) == {"input": 7_000_000, "output": 8_000_000}


FAULTS = {
    "inline: {provider: {}}": "config.modelCatalog[0].inline",
    "inline: {providers: {p: {models: {m: {rates: {input: '-1'}}}}}}":
        "config.modelCatalog[0].inline: providers.p.models.m.rates.input: a rate must be a decimal",
    "inline: {providers: {p: {models: {m: {rates: {input: 1}}}}}}":
        "config.modelCatalog[0].inline.providers.p.models.m.rates.input",
    "inline: {providers: {p: {models: {m: {rates: {input: '0.0000001'}}}}}}": "at most 6 decimals",
    "inline: {providers: {p: {models: {m: {tiers: [{contextOver: 2, rates: {}}, {contextOver: 1, rates: {}}]}}}}}":
        "providers.p.models.m.tiers[1].contextOver: tiers must be in ascending order",
    "inline: '{'": "config.modelCatalog[0].inline: not a JSON document",
    "inline: '[]'": "config.modelCatalog[0].inline: expected an object",
    "file: bad.json": "config.modelCatalog[0].file: bad.json: providers.p.x: unknown field",
    "file: ''": "not a file name",
    "file: .": "cannot read '.'",
    "{file: a, inline: {}}": "config.modelCatalog[0]",
    "{}": "config.modelCatalog[0]",
}  # fmt: skip


@pytest.mark.parametrize("source", FAULTS)
def test_faults_are_told_with_their_place(prices, tmp_path: Path, source: str) -> None:
    (tmp_path / "bad.json").write_text('{"providers": {"p": {"x": 1}}}')
    with pytest.raises(LoadErrors) as found:
        prices(source)
    assert FAULTS[source] in "\n".join(str(error) for error in found.value.errors)


def test_many_faults_are_cut_short(prices, tmp_path: Path) -> None:
    models = {f"m{number}": 1 for number in range(1000)}
    (tmp_path / "bad.json").write_text(json.dumps({"providers": {"p": {"models": models}}}))
    with pytest.raises(LoadErrors) as found:
        prices("file: bad.json")
    assert len(found.value.errors) == 20
