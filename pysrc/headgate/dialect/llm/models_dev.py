"""Converts the models.dev data set (https://models.dev/api.json) to a cost catalog.

Its prices are JSON numbers in US dollars per million tokens. They are read as decimals, so that no precision is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final

from headgate.dialect.llm.catalog import DECIMALS, MAX_RATE, Catalog, Model, rate_text
from headgate.document.lazy_dataclass import dataclass

# Names in telemetry of the providers whose names differ there.
RENAMED: Final = {
    "google": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "amazon-bedrock": "aws.bedrock",
    "fireworks-ai": "fireworks",
    "github-copilot": "copilot",
}
RATES: Final = {
    "input": "input",
    "output": "output",
    "cache_read": "cacheRead",
    "cache_write": "cacheWrite",
    "reasoning": "reasoning",
    "input_audio": "inputAudio",
    "output_audio": "outputAudio",
}
_TIER: Final = re.compile(r"context_over_([0-9]{1,6})k")


class NotTheDataSet(ValueError):
    """The text is not the models.dev data set. The argument is the reason."""


@dataclass(slots=True)
class Imported:
    """The result of an import, with numbers of models and rates.

    `skipped` counts models without a price, `left_out` deprecated models, and `rounded` rates with more than six
    decimals.
    """

    catalog: Catalog
    skipped: int = 0
    left_out: int = 0
    rounded: int = 0

    @property
    def models(self) -> int:
        """The number of models with a price."""
        return sum(len(models) for models in self.catalog.values())


def _picos(value: object, where: str, found: Imported) -> int:
    if not isinstance(value, Decimal) or not value.is_finite() or value < 0:
        raise NotTheDataSet(f"{where}: not a price")
    exact = value.scaleb(DECIMALS)
    whole = exact.to_integral_value(ROUND_HALF_EVEN)
    if whole > MAX_RATE:
        raise NotTheDataSet(f"{where}: more than a million dollars per million tokens")
    found.rounded += whole != exact
    return int(whole)


def _rates(cost: Mapping[str, Any], where: str, found: Imported) -> dict[str, int]:
    return {
        name: _picos(cost[key], f"{where}.{key}", found) for key, name in RATES.items() if cost.get(key) is not None
    }


def _model(cost: Mapping[str, Any], where: str, found: Imported) -> Model:
    tiers = []
    for key, value in cost.items():
        over = _TIER.fullmatch(key)
        if over is not None and isinstance(value, dict):
            tiers.append((int(over[1]) * 1000, _rates(value, f"{where}.{key}", found)))
    return Model(rates=_rates(cost, where, found), tiers=sorted(tiers) or None)


def read(text: bytes | str, providers: Collection[str] = (), *, legacy: bool = False) -> Imported:
    """Return the catalog of the data set. Raises NotTheDataSet.

    `providers` selects providers by their names in the data set or in telemetry; empty means all. With `legacy`,
    deprecated models are included.
    """
    try:
        data: Any = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except (ValueError, RecursionError) as error:
        raise NotTheDataSet(f"not JSON: {error}") from None
    if isinstance(data, dict) and isinstance(data.get("providers"), dict):
        data = data["providers"]
    if not isinstance(data, dict):
        raise NotTheDataSet("not an object of providers")
    wanted = {RENAMED.get(name, name) for name in providers}
    found = Imported({})
    for key, provider in data.items():
        models = provider.get("models") if isinstance(provider, dict) else None
        if not isinstance(models, dict):
            raise NotTheDataSet(f"{key}: no provider with models")
        name = str(RENAMED.get(key, key))
        if wanted and name not in wanted:
            continue
        _add(found, name, key, models, legacy)
    missing = sorted(wanted - {RENAMED.get(key, key) for key in data})
    if missing:
        raise NotTheDataSet(f"no provider {', '.join(missing)}")
    return found


def _add(found: Imported, name: str, key: str, models: dict[str, Any], legacy: bool) -> None:
    priced = {}
    for model, entry in sorted(models.items()):
        if not isinstance(entry, dict):
            raise NotTheDataSet(f"{key}.models.{model}: not an object")
        cost = entry.get("cost")
        if entry.get("status") == "deprecated" and not legacy:
            found.left_out += 1
        elif not isinstance(cost, dict) or cost.get("input") is None:
            found.skipped += 1
        else:
            priced[model] = _model(cost, f"{key}.models.{model}.cost", found)
    if priced:
        found.catalog[name] = priced


def document(catalog: Catalog, *, pretty: bool = False) -> str:
    """Return the catalog as the text of a file for `config.modelCatalog`. Equal prices give the same text."""
    shown: dict[str, Any] = {}
    for provider, models in sorted(catalog.items()):
        shown[provider] = {"models": {name: _shown(model) for name, model in sorted(models.items())}}
    separators = None if pretty else (",", ":")
    indent = 2 if pretty else None
    return json.dumps({"providers": shown}, indent=indent, separators=separators, ensure_ascii=False) + "\n"


def _shown(model: Model) -> dict[str, Any]:
    found: dict[str, Any] = {"rates": {name: rate_text(value) for name, value in model.rates.items()}}
    if model.tiers:
        found["tiers"] = [
            {"contextOver": over, "rates": {name: rate_text(value) for name, value in rates.items()}}
            for over, rates in model.tiers
        ]
    return found
