"""Cost catalogs: what is read, what is refused and where, and how several become one."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.dialect.llm.catalog import compact, merge, rate, rate_text, read, version_of


def read_one(model: Any) -> tuple[Any, list[tuple[str, str]]]:
    faults: list[tuple[str, str]] = []
    found = read({"providers": {"p": {"models": {"m": model}}}}, lambda path, text: faults.append((path, text)))
    return found["p"]["m"], faults


def test_rates_are_exact() -> None:
    assert rate("2.50") == 2_500_000
    assert rate("0.000001") == 1
    assert rate("0") == 0
    assert rate("1000000") == 10**12
    for text in ("2.5", "0.000001", "10", "1000000"):
        assert rate_text(rate(text)) == text


@pytest.mark.parametrize(
    "text", ["", "-1", "1e3", ".5", "1.", "1.0000001", "1,5", " 1", "1000000.000001", "NaN", 2.5, 1, None, True]
)
def test_what_is_no_rate_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="rate"):
        rate(text)


FAULTS: dict[str, tuple[Any, str]] = {
    "unknown rate": ({"rates": {"inputs": "1"}}, "providers.p.models.m.rates.inputs"),
    "bad rate": ({"rates": {"input": "x"}}, "providers.p.models.m.rates.input"),
    "number": ({"rates": {"input": 2}}, "providers.p.models.m.rates.input"),
    "unknown field": ({"price": 1}, "providers.p.models.m.price"),
    "no object": ([], "providers.p.models.m"),
    "tiers fall": ({"tiers": [{"contextOver": 5, "rates": {}}, {"contextOver": 5, "rates": {}}]},
                   "providers.p.models.m.tiers[1].contextOver"),
    "tier without": ({"tiers": [{"rates": {}}]}, "providers.p.models.m.tiers[0].contextOver"),
    "tier rate": ({"tiers": [{"contextOver": 5, "rates": {"input": "-1"}}]},
                  "providers.p.models.m.tiers[0].rates.input"),
    "tag twice": ({"tags": ["a", "a"]}, "providers.p.models.m.tags"),
    "tag": ({"tags": [1]}, "providers.p.models.m.tags"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_have_a_path(name: str) -> None:
    model, path = FAULTS[name]
    assert [where for where, _ in read_one(model)[1]] == [path]


@pytest.mark.parametrize(("document", "path"), [([], ""), ({"provider": {}}, "provider"), ({"providers": []}, "providers"),
                                                ({"providers": {"p": {"model": {}}}}, "providers.p.model")])  # fmt: skip
def test_faults_of_the_frame_have_a_path(document: Any, path: str) -> None:
    faults: list[str] = []
    read(document, lambda where, _: faults.append(where))
    assert faults == [path]


def test_null_rates_say_nothing() -> None:
    model, faults = read_one({"rates": {"input": "1", "output": None}})
    assert (model.rates, faults) == ({"input": 1_000_000}, [])


def test_later_catalogs_win_rate_by_rate() -> None:
    def one(model: Any) -> Any:
        found, faults = read_one(model)
        assert not faults
        return {"p": {"m": found}}

    tiers = [{"contextOver": 9, "rates": {"input": "5"}}]
    under = one({"rates": {"input": "1", "output": "2"}, "tiers": tiers, "tags": ["a", "b"]})
    kept = merge(under, one({"rates": {"output": "3"}, "tags": ["b", "c"]}))["p"]["m"]
    assert kept.rates == {"input": 1_000_000, "output": 3_000_000}
    assert kept.tiers == [(9, {"input": 5_000_000})]
    assert kept.tags == ["a", "b", "c"]
    assert merge(under, one({"tiers": []}))["p"]["m"].tiers == []
    assert set(merge(under, {"p": {"other": kept}, "q": {}})) == {"p", "q"}
    assert set(merge(under, {"p": {"other": kept}})["p"]) == {"m", "other"}


def test_a_version_is_that_of_the_prices() -> None:
    texts = [compact({"p": {"m": read_one(model)[0]}}) for model in
             ({"rates": {"input": "1.0"}}, {"rates": {"input": "1"}, "tiers": None}, {"rates": {"input": "1.1"}})]  # fmt: skip
    assert version_of(texts[0]) == version_of(texts[1]) != version_of(texts[2])
