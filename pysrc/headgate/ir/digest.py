"""Digests of IR values: equal for equal content, whoever built it."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from functools import cache

from headgate.document.secret import Secret


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _write(value: object, out: list[str]) -> None:
    if isinstance(value, Secret):
        out.append(f"secret:{value.fingerprint()}")
    elif isinstance(value, tuple):
        out.append("(")
        for item in value:
            _write(item, out)
        out.append(")")
    elif is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        out.append(kind.__name__)
        for name in _names(kind):
            _write(getattr(value, name), out)
        out.append(";")
    elif isinstance(value, str | int | float | bytes | None):
        out.append(repr(value))
    else:
        raise TypeError(f"{type(value).__name__} has no place in the IR")


def digest(*values: object) -> str:
    """Return 32 hexadecimal digits over `values` (dataclasses, tuples, texts, numbers, None, secrets).

    Secrets count by their fingerprint, so digests of values that hold any compare within one process only.
    """
    out: list[str] = []
    for value in values:
        _write(value, out)
    return hashlib.sha256("\x1f".join(out).encode()).hexdigest()[:32]
