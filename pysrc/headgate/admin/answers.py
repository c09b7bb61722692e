"""JSON responses."""

from __future__ import annotations

import json
from typing import Any, Final

from headgate.admin.web import AdminResponse

JSON: Final = "application/json"
NO_STORE: Final = (("cache-control", "no-store"),)


def as_json(status: int, document: Any) -> AdminResponse:
    """Return a JSON response that must not be cached."""
    return AdminResponse(status, json.dumps(document, separators=(",", ":")).encode(), JSON, NO_STORE)
