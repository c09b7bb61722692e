"""Models without a price are told where keys have limits of dollars."""

from __future__ import annotations

from collections.abc import Callable

PRICED = """
config:
  database: {url: "sqlite://keys.db"}
  modelCatalog: [{inline: {providers: {openai: {models: {known: {rates: {input: "1", output: "2"}}}}}}}]
virtualKeys: {teams: [{name: t, limits: [{UNIT: 5, per: day}]}], keys: [{name: k, keyHash: "sha256:HASH", team: t}]}
llm:
  policies: {apiKey: {virtualKeys: true}}
  models:
  - {name: known, provider: openai}
  - {name: mine, provider: openai, params: {model: known}}
  - {name: "any-*", provider: openai}
  - {name: odd, provider: openai}
  - {name: other, provider: openai, params: {model: odder}}
""".replace("HASH", "0" * 64)


def test_models_without_a_price_are_named_where_dollars_are_limited(warnings: Callable[..., list[str]]) -> None:
    [told] = warnings(PRICED.replace("UNIT", "dollars"))
    assert "no price of openai/odder, openai/odd: requests of keys with a limit of dollars get 403" in told
    assert warnings(PRICED.replace("UNIT", "tokens")) == []
    [told] = warnings(PRICED.replace("UNIT", "dollars").replace("modelCatalog", "customFunctions: ''\n  # "))
    assert "no prices (config.modelCatalog)" in told
