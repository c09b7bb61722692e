"""Prices: no token counts twice or not at all, and no cent is rounded."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.llm import price_of
from headgate_drivers.shared import paid, pay
from headgate_engine.context.request import TokenUsage
from headgate_engine.llm.prices import MAX_RATE, PARTS, STATUSES, PricedModel, PriceList, Rates
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.money import Money, dollars, slot_dollars
from headgate_engine.shared.segment import Segment

M = 1_000_000


def usage(**counts: int) -> TokenUsage:
    found = TokenUsage()
    for name, count in counts.items():
        setattr(found, f"{name}_tokens", count)
    return found


def cost(rates: dict[str, int], tokens: TokenUsage) -> dict[str, int] | None:
    prices = PriceList({"p": {"m": PricedModel(Rates(rates))}})
    return price_of(prices, "p", None, "m", tokens)


def told(found: dict[str, int] | None) -> dict[str, int]:
    assert found is not None
    return {name: value for name, value in found.items() if value}


def test_cached_tokens_have_a_rate_of_their_own() -> None:
    found = cost({"input": 2 * M, "output": 8 * M, "cacheRead": M // 2}, usage(input=1000, cached=400, output=100))
    assert told(found) == {"total": 2_200_000_000, "input": 1_200_000_000, "cacheRead": 200_000_000,
                           "output": 800_000_000}  # fmt: skip


def test_without_it_they_are_input() -> None:
    found = cost({"input": 2 * M, "output": 8 * M}, usage(input=1000, cached=400, output=100))
    assert told(found) == {"total": 2_800_000_000, "input": 2_000_000_000, "output": 800_000_000}


def test_reasoning_and_audio_fall_back() -> None:
    tokens = usage(input=100, input_audio=30, output=50, reasoning=20, output_audio=10)
    assert told(cost({"input": 1, "output": 10}, tokens)) == {
        "total": 600, "input": 70, "inputAudio": 30, "output": 200, "reasoning": 200, "outputAudio": 100}  # fmt: skip
    apart = cost({"input": 1, "output": 10, "reasoning": 0, "inputAudio": 5, "outputAudio": 20}, tokens)
    assert told(apart) == {"total": 620, "input": 70, "inputAudio": 150, "output": 200, "outputAudio": 200}


def test_what_has_no_rate_is_not_free() -> None:
    assert cost({}, usage(input=1)) is None
    assert cost({"input": 5}, usage(input=1, output=1)) is None
    assert told(cost({"input": 5}, usage(input=1, output=0))) == {"total": 5, "input": 5}
    assert told(cost({"input": 0, "output": 0}, usage(input=1, output=1))) == {}


def test_a_tier_prices_the_whole_request_over_the_base() -> None:
    base = Rates({"input": 1, "output": 10, "cacheRead": 0})
    model = PricedModel(base, [(100, Rates({"input": 2}, base)), (200, Rates({"input": 3, "output": 20}, base))])
    prices = PriceList({"p": {"m": model}})

    def total(tokens: int) -> int:
        found = price_of(prices, "p", None, "m", usage(input=tokens, cached=10, output=1))
        assert found is not None
        return found["total"]

    assert (total(100), total(101), total(200), total(201)) == (100, 192, 390, 593)


def test_the_model_that_answered_counts_first() -> None:
    segment = Segment.create()
    counters = {status: Counter(segment, status.encode()) for status in STATUSES}
    dear, cheap, none = (PricedModel(Rates(rates)) for rates in ({"input": 9}, {"input": 1}, {}))
    prices = PriceList({"p": {"dear": dear, "cheap": cheap, "none": none}}, "v", counters)
    asked = [("dear", "cheap"), ("unknown", "cheap"), (None, "dear"), ("none", "cheap"), ("x", "y")]
    found = [price_of(prices, "p", answered, wanted, usage(input=1)) for answered, wanted in asked]
    assert [None if one is None else one["total"] for one in found] == [9, 1, 9, None, None]
    assert price_of(prices, "q", "dear", "dear", usage(input=1)) is None
    assert {status: counter.value for status, counter in counters.items()} == {
        "Exact": 3, "Unpriced": 1, "Missing": 2, "NoCatalog": 0}  # fmt: skip
    assert price_of(PriceList(None, "", counters), "p", "m", "m", usage(input=1)) is None
    assert counters["NoCatalog"].value == 1


@pytest.mark.parametrize("rates", [{"input": -1}, {"input": MAX_RATE + 1}, {"other": 1}])
def test_rates_are_checked(rates: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        Rates(rates)


COUNT = st.integers(-1, 10**7)


@given(COUNT, COUNT, COUNT, COUNT, COUNT, COUNT, COUNT, st.integers(0, 10**6))
def test_splits_conserve_the_total(a: int, b: int, c: int, d: int, e: int, f: int, g: int, rate: int) -> None:
    """Whatever a provider says of the parts: at one rate for all, every token is paid once."""
    tokens = usage(input=a, cached=b, cache_write=c, input_audio=d, output=e, reasoning=f, output_audio=g)
    found = cost(dict.fromkeys(PARTS, rate), tokens)
    assert found is not None
    assert found["total"] == sum(found[part] for part in PARTS) == rate * (max(a, 0) + max(e, 0))


def test_nonsense_of_a_provider_stays_finite() -> None:
    found = cost({"input": MAX_RATE, "output": MAX_RATE}, usage(input=10**18 - 1, output=10**18 - 1))
    assert found is not None
    assert 0 < found["total"] < 2**63


@given(st.lists(st.integers(0, 10**15), max_size=50))
def test_sums_of_money_do_not_drift(amounts: list[int]) -> None:
    segment = Segment.create()
    money = Money(segment, b"m\0")
    for amount in amounts:
        pay(money, amount)
    assert paid(money) == dollars(sum(amounts)) == Decimal(sum(amounts)) / 10**12
    slot = next(value for key, _, value in segment.entries() if key == b"m\0")
    assert slot_dollars(slot) == paid(money)


def test_money_without_a_place_is_added_together() -> None:
    segment = Segment.create(series_limit=0)
    pay(Money(segment, b'm\0model="a"'), 2)
    pay(Money(segment, b'm\0model="b"'), 3)
    assert paid(Money(segment, b'm\0model="other"')) == Decimal("5e-12")
    with pytest.raises(ValueError):
        pay(Money(segment, b'm\0model="c"'), -1)
