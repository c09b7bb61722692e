"""The endpoints below `/api/costs`: the prices of models, and their import from models.dev."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from typing import Any, Final

from headgate.admin.answers import as_json
from headgate.admin.configuration import READ_ONLY
from headgate.admin.running import RunningGateway
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute
from headgate.dialect.llm import models_dev
from headgate.dialect.llm.catalog import rate_text
from headgate.document.replace import replace_file
from headgate.ir.price_catalog import PriceCatalog

logger = logging.getLogger("headgate.admin")

SOURCE: Final = "https://models.dev/api.json"
VARIABLE: Final = "MODEL_CATALOG_SOURCE"
SECONDS: Final = 30.0
MAX_BYTES: Final = 64 * 1024 * 1024
REFRESHED: Final = "Base cost catalog refreshed successfully"
NO_FILE: Final = "there is no base file: set one in config.modelCatalog"


class Failed(Exception):
    """The prices could not be downloaded or written; the arguments are a status and the reason."""


def cost_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the rows of the admin server's table that are below `/api/costs`."""
    fetching = asyncio.Lock()

    async def models(_request: AdminRequest) -> AdminResponse:
        return as_json(200, models_view(running.gateway.process.prices))

    async def refresh(_request: AdminRequest) -> AdminResponse:
        settings = running.gateway.process
        if settings.storage_mode == "readOnly":
            return as_json(403, READ_ONLY)
        if settings.prices is None or settings.prices.base is None:
            return as_json(404, NO_FILE)
        async with fetching:
            try:
                found = await asyncio.to_thread(fetch, os.environ.get(VARIABLE) or SOURCE, settings.prices.base)
            except Failed as error:
                return as_json(*error.args)
        logger.info("cost catalog written", extra={"file": settings.prices.base, "models": found.models})
        told = {"status": "success", "message": REFRESHED, "file": settings.prices.base}
        numbers = {"models": found.models, "providers": len(found.catalog), "unpriced": found.skipped}
        return as_json(200, {**told, **numbers})

    return (
        AdminRoute("GET", "/api/costs/models", models),
        AdminRoute("POST", "/api/costs/refresh-base", refresh, own=True),
    )


def models_view(prices: PriceCatalog | None) -> dict[str, Any]:
    """Return the merged price catalog, one row per model; rates are in dollars per million tokens."""
    if prices is None:
        return {"models": [], "version": None, "files": [], "baseFile": None}
    shown = [
        {"provider": provider, "model": name, "rates": _rates(model["rates"]), "tags": model["tags"],
         "tiers": [{"contextOver": over, "rates": _rates(rates)} for over, rates in model["tiers"]]}
        for provider, models in json.loads(prices.document or "{}").items()
        for name, model in models.items()
    ]  # fmt: skip
    return {"models": shown, "version": prices.version or None, "files": list(prices.files), "baseFile": prices.base}


def _rates(rates: dict[str, int]) -> dict[str, str]:
    return {name: rate_text(picos) for name, picos in rates.items()}


def fetch(url: str, path: str) -> models_dev.Imported:
    """Download the data set and write its prices to the file. Raises Failed and then leaves the file unchanged."""
    try:
        found = models_dev.read(_download(url))
        if not found.models:
            raise Failed(502, f"{url}: no model has a price")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        replace_file(path, models_dev.document(found.catalog).encode())
    except models_dev.NotTheDataSet as error:
        raise Failed(502, f"{url}: {error}") from None
    except OSError as error:
        raise Failed(500, f"cannot write {path}: {error.strerror or error}") from None
    return found


def _download(url: str) -> bytes:
    # A start need not load them.
    import http.client
    import urllib.error
    import urllib.request

    if not url.startswith(("https://", "http://")):
        raise Failed(500, f"{VARIABLE}: not a URL of http or https")
    request = urllib.request.Request(url, headers={"accept": "application/json", "user-agent": "headgate"})  # noqa: S310 - see above
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - see above
            data = answer.read(MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise Failed(502, f"{url}: status {error.code}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Failed(502, f"{url}: {getattr(error, 'reason', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise Failed(502, f"{url}: larger than {MAX_BYTES} bytes")
    return bytes(data)
