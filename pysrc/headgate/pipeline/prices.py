"""The cost catalog as the engine looks it up."""

from __future__ import annotations

import json
from typing import Any, Final

from headgate.ir.price_catalog import PriceCatalog
from headgate.telemetry.metrics import series_key
from headgate_engine.llm.prices import STATUSES, PricedModel, PriceList, Rates
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment

LOOKUPS: Final = "gw_cost_catalog_lookups_total"


def _priced(model: dict[str, Any]) -> PricedModel:
    base = Rates(model["rates"])
    return PricedModel(base, [(over, Rates(rates, base)) for over, rates in model["tiers"]])


def _counter(segment: Segment, status: str) -> Counter:
    return Counter(segment, series_key(LOOKUPS, {"status": status}))


def tags_of(catalog: PriceCatalog | None, provider: str) -> dict[str, list[str]]:
    """Return the tags of a provider's models that have any."""
    if catalog is None or catalog.document is None:
        return {}
    models = json.loads(catalog.document).get(provider, {})
    return {name: model["tags"] for name, model in models.items() if model["tags"]}


def price_list(catalog: PriceCatalog | None, segment: Segment) -> PriceList | None:
    """Return the prices, None when no catalog is configured; look-ups are counted in `segment`."""
    if catalog is None:
        return None
    counters = {status: _counter(segment, status) for status in STATUSES}
    if catalog.document is None:
        return PriceList(None, "", counters)
    providers = {
        name: {model: _priced(told) for model, told in models.items()}
        for name, models in json.loads(catalog.document).items()
    }
    return PriceList(providers, catalog.version, counters)
