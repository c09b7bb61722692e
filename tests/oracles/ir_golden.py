"""IR values as golden files have them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from headgate.document.secret import Secret


def ir_json(value: Any) -> Any:
    """Return an IR value for a golden file: fields at their default are left out, types are named."""
    if isinstance(value, Secret):
        return str(value)
    if isinstance(value, frozenset):
        return [ir_json(item) for item in sorted(value)]
    if isinstance(value, tuple):
        return [ir_json(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if is_dataclass(value) and not isinstance(value, type):
        found = {"": type(value).__name__}
        for field in fields(value):
            current = getattr(value, field.name)
            if field.name != "digest" and current != field.default:
                found[field.name] = ir_json(current)
        return found
    return value
