"""Digests of IR values: equal for equal content, whoever built it."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Final

from headgate.document.secret import Secret

_PLAIN: Final = (str, int, float, bytes, bool, type(None))


@cache
def _names(kind: type) -> tuple[str, ...]:
    """Return the field names of an IR class; raises TypeError for any other."""
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} has no place in the IR")
    return tuple(field.name for field in fields(kind))


def _write(value: object, out: list[str]) -> None:
    kind = type(value)
    if kind in _PLAIN:
        out.append(repr(value))
    elif isinstance(value, tuple):
        out.append("(")
        if value and getattr(type(value[0]), "DIGESTED", False) and len({*map(type, value)}) == 1:
            # There may be very many of them.
            out.append(type(value[0]).__name__)
            out += [item.digest for item in value]
        else:
            for item in value:
                _write(item, out)
        out.append(")")
    elif isinstance(value, Secret):
        out.append(f"secret:{value.fingerprint()}")
    else:
        names = _names(kind)  # type: ignore[arg-type]
        out.append(kind.__name__)
        if getattr(kind, "DIGESTED", False):
            out.append(value.digest)  # type: ignore[attr-defined]
            return
        for name in names:
            _write(getattr(value, name), out)
        out.append(";")


def digest(*values: object) -> str:
    """Return 32 hexadecimal digits over `values` (dataclasses, tuples, texts, numbers, None, secrets).

    A value whose class is DIGESTED counts by its own `digest`. Secrets count by their fingerprint, so digests of values
    that hold any compare within one process only.
    """
    out: list[str] = []
    for value in values:
        _write(value, out)
    return hashlib.sha256("\x1f".join(out).encode()).hexdigest()[:32]
