"""The models.dev data set as a cost catalog."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.llm import catalog
from headgate.dialect.llm.models_dev import NotTheDataSet, document, read

DATA: dict[str, Any] = {
    "google": {
        "id": "google",
        "models": {
            "g-pro": {
                "id": "g-pro",
                "cost": {
                    "input": 1.25, "output": 10, "cache_read": 0.31, "input_audio": 0.7,
                    "context_over_200k": {"input": 2.5, "output": 15},
                },
            },
            "g-free": {"id": "g-free"},
            "g-old": {"id": "g-old", "status": "deprecated", "cost": {"input": 1, "output": 1}},
        },
    },
    "amazon-bedrock": {"models": {"c": {"cost": {"input": 0.1, "output": 0.2, "cache_write": 0.3, "reasoning": 0.4}}}},
    "openai": {"models": {"long": {"cost": {"input": 0.12345678, "output": 1e-6}}}},
    "nothing": {"models": {}},
}  # fmt: skip


def text() -> str:
    return json.dumps(DATA)


def test_prices_come_over_exactly() -> None:
    found = read(text())
    assert json.loads(document(found.catalog)) == {
        "providers": {
            "aws.bedrock": {"models": {"c": {"rates": {
                "input": "0.1", "output": "0.2", "cacheWrite": "0.3", "reasoning": "0.4"}}}},
            "gcp.gemini": {"models": {"g-pro": {
                "rates": {"input": "1.25", "output": "10", "cacheRead": "0.31", "inputAudio": "0.7"},
                "tiers": [{"contextOver": 200000, "rates": {"input": "2.5", "output": "15"}}]}}},
            "openai": {"models": {"long": {"rates": {"input": "0.123457", "output": "0.000001"}}}},
        }
    }  # fmt: skip
    assert (found.models, found.skipped, found.left_out, found.rounded) == (3, 1, 1, 1)


def test_the_document_is_one_that_the_gateway_takes() -> None:
    faults: list[str] = []
    found = read(text(), legacy=True)
    again = catalog.read(json.loads(document(found.catalog, pretty=True)), lambda path, _: faults.append(path))
    assert not faults
    assert catalog.compact(again) == catalog.compact(found.catalog)
    assert "g-old" in again["gcp.gemini"]


def test_equal_data_is_equal_text_in_any_order() -> None:
    turned = json.dumps(dict(reversed(DATA.items())))
    assert document(read(turned).catalog) == document(read(text()).catalog) == document(read(
        json.dumps({"providers": DATA})).catalog)  # fmt: skip


@pytest.mark.parametrize("names", [["google"], ["gcp.gemini"]])
def test_providers_go_by_both_names(names: list[str]) -> None:
    assert list(read(text(), names).catalog) == ["gcp.gemini"]


FAULTS = {
    "{": "not JSON",
    "[]": "not an object",
    '{"a": 1}': "a: no provider",
    '{"a": {"models": {"m": 1}}}': "a.models.m: not an object",
    '{"a": {"models": {"m": {"cost": {"input": "1"}}}}}': "a.models.m.cost.input: not a price",
    '{"a": {"models": {"m": {"cost": {"input": -1}}}}}': "a.models.m.cost.input: not a price",
    '{"a": {"models": {"m": {"cost": {"input": 1e9}}}}}': "a.models.m.cost.input: more than",
}


@pytest.mark.parametrize("raw", FAULTS)
def test_what_is_no_data_set_is_refused(raw: str) -> None:
    with pytest.raises(NotTheDataSet, match=FAULTS[raw]):
        read(raw)


def test_a_provider_that_is_not_there_is_told() -> None:
    with pytest.raises(NotTheDataSet, match="no provider opanai"):
        read(text(), ["opanai", "google"])
