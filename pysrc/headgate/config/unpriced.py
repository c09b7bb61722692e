"""Models without a price in a configuration whose virtual keys have limits of dollars."""

from __future__ import annotations

import json
from typing import Final

from headgate.ir.bind import Bind
from headgate.ir.model import LlmRouter
from headgate.ir.price_catalog import PriceCatalog

REFUSED: Final = "requests of keys with a limit of dollars get 403"
# Models that a warning names.
MOST_NAMED: Final = 5


def unpriced(catalog: PriceCatalog | None, binds: tuple[Bind, ...]) -> list[str]:
    """Return warnings of models that the catalog has no price for, as far as their names are known."""
    if catalog is None or catalog.document is None:
        return [f"virtualKeys: there are limits of dollars, and no prices (config.modelCatalog): {REFUSED}"]
    prices = json.loads(catalog.document)
    routes = (route for bind in binds for listener in bind.listeners for route in listener.routes)
    routers = [one.backend for route in routes for one in route.backends if isinstance(one.backend, LlmRouter)]
    found: dict[str, None] = {}
    for router in routers:
        for model in (*router.models, *router.internal_models):
            name = model.pinned_model or model.pattern
            if "*" not in name and name not in prices.get(model.provider.kind, {}):
                found[f"{model.provider.kind}/{name}"] = None
    if not found:
        return []
    names = list(found)
    shown = ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
    return [f"virtualKeys: there are limits of dollars, and config.modelCatalog has no price of {shown}: {REFUSED}"]
