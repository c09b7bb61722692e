"""Cost catalogs: prices of models by provider.

Documents have rates as decimal texts in US dollars per million tokens, with up to six decimals. Here they are integers
in picodollars per token, so that nothing is rounded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from headgate.document.lazy_dataclass import dataclass
from headgate_engine.lazy_pattern import lazy_pattern

RATES: Final = ("input", "output", "cacheRead", "cacheWrite", "reasoning", "inputAudio", "outputAudio")
DECIMALS: Final = 6
# A million dollars per million tokens. A higher rate is certainly a mistake.
MAX_RATE: Final = 10**12
MAX_CONTEXT: Final = 2**53
_DECIMAL: Final = lazy_pattern(r"([0-9]{1,9})(?:\.([0-9]+))?")

Json = dict[str, Any]
# A function that takes the path of a faulty member and an error message.
Fault = Callable[[str, str], None]


@dataclass(slots=True)
class Model:
    """Prices of one model. `rates` are picodollars per token by name.

    `tiers` are (context, rates) pairs in ascending order: the rates apply above this number of context tokens. None
    means that the document has no tiers for the model.
    """

    rates: dict[str, int] = field(default_factory=dict)
    tiers: list[tuple[int, dict[str, int]]] | None = None
    tags: list[str] = field(default_factory=list)


Catalog = dict[str, dict[str, Model]]


def rate(text: object) -> int:
    """Return a decimal text as picodollars per token. Raises ValueError."""
    found = _DECIMAL.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError('a rate must be a decimal string of dollars per million tokens, such as "2.50"')
    whole, decimals = found[1], found[2] or ""
    if len(decimals) > DECIMALS:
        raise ValueError(f"a rate has at most {DECIMALS} decimals")
    value = int(whole) * 10**DECIMALS + int(decimals.ljust(DECIMALS, "0"))
    if value > MAX_RATE:
        raise ValueError("a rate is at most 1000000 dollars per million tokens")
    return value


def rate_text(picos: int) -> str:
    """Return picodollars per token as a decimal text for a document, without trailing zeroes."""
    whole, decimals = divmod(picos, 10**DECIMALS)
    digits = f"{decimals:0{DECIMALS}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _members(value: object, path: str, known: tuple[str, ...] | None, fault: Fault) -> Mapping[str, Any]:
    """Return the members of an object. Any other value, and unknown members, are reported as faults."""
    if not isinstance(value, Mapping):
        fault(path, f"expected an object, found {type(value).__name__}")
        return {}
    for name in value:
        if known is not None and name not in known:
            fault(f"{path}.{name}", "unknown field")
    return value


def _given(members: Mapping[str, Any], name: str, default: Any) -> Any:
    """Return a member, or the default if it is missing or null."""
    value = members.get(name)
    return default if value is None else value


def _rates(value: object, path: str, fault: Fault) -> dict[str, int]:
    found = {}
    for name, text in _members(value, path, RATES, fault).items():
        if name not in RATES or text is None:
            continue
        try:
            found[name] = rate(text)
        except ValueError as error:
            fault(f"{path}.{name}", str(error))
    return found


def _tiers(value: object, path: str, fault: Fault) -> list[tuple[int, dict[str, int]]]:
    found: list[tuple[int, dict[str, int]]] = []
    if not isinstance(value, list):
        fault(path, "expected a list")
        return found
    for index, one in enumerate(value):
        here = f"{path}[{index}]"
        tier = _members(one, here, ("contextOver", "rates"), fault)
        over = tier.get("contextOver")
        if type(over) is not int or not 0 <= over <= MAX_CONTEXT:
            fault(f"{here}.contextOver", "expected a number of tokens")
        elif found and over <= found[-1][0]:
            fault(f"{here}.contextOver", "tiers must be in ascending order of contextOver")
        else:
            found.append((over, _rates(_given(tier, "rates", {}), f"{here}.rates", fault)))
    return found


def _tags(value: object, path: str, fault: Fault) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        fault(path, "expected a list of strings")
        return []
    if len(set(value)) < len(value):
        fault(path, "a tag is defined twice")
    return list(value)


def _model(value: object, path: str, fault: Fault) -> Model:
    members = _members(value, path, ("rates", "tiers", "tags"), fault)
    return Model(
        rates=_rates(_given(members, "rates", {}), f"{path}.rates", fault),
        tiers=None if members.get("tiers") is None else _tiers(members["tiers"], f"{path}.tiers", fault),
        tags=_tags(_given(members, "tags", []), f"{path}.tags", fault),
    )


def read(value: object, fault: Fault) -> Catalog:
    """Return the catalog of a document. All errors are reported to `fault` with their paths in the document."""
    found: Catalog = {}
    root = _members(value, "", ("providers",), lambda path, text: fault(path.lstrip("."), text))
    for provider, entry in _members(_given(root, "providers", {}), "providers", None, fault).items():
        path = f"providers.{provider}"
        models = _given(_members(entry, path, ("models",), fault), "models", {})
        found[provider] = {
            name: _model(model, f"{path}.models.{name}", fault)
            for name, model in _members(models, f"{path}.models", None, fault).items()
        }
    return found


def merge(under: Catalog, over: Catalog) -> Catalog:
    """Return the merged catalog.

    For a model in both, each rate of `over` wins, its tiers win as a whole, and the tags are united.
    """
    merged: Catalog = {provider: dict(models) for provider, models in under.items()}
    for provider, models in over.items():
        into = merged.setdefault(provider, {})
        for name, model in models.items():
            known = into.get(name)
            if known is None:
                into[name] = model
                continue
            into[name] = Model(
                rates=known.rates | model.rates,
                tiers=known.tiers if model.tiers is None else model.tiers,
                tags=list(dict.fromkeys((*known.tags, *model.tags))),
            )
    return merged


def compact(catalog: Catalog) -> str:
    """Return the catalog as compact JSON. Equal prices give the same text."""
    shown = {
        provider: {
            name: {"rates": model.rates, "tiers": model.tiers or [], "tags": sorted(model.tags)}
            for name, model in models.items()
        }
        for provider, models in catalog.items()
    }
    return json.dumps(shown, sort_keys=True, separators=(",", ":"))


def version_of(text: str) -> str:
    """Return 12 hexadecimal digits that identify the prices in a result of compact()."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
