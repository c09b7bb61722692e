"""Digests of IR values. Equal values have equal digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Final

from headgate.document.secret import Secret

_PLAIN: Final = frozenset((str, int, float, bytes, bool, type(None)))


@cache
def _values(kind: type) -> Callable[[object], tuple[object, ...]]:
    """Return a function that gives the values of all fields of an IR class. Raises TypeError for any other class."""
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} has no place in the IR")
    names = [field.name for field in fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _write(value: object, out: list[str]) -> None:
    kind = type(value)
    if kind in _PLAIN:
        out.append(repr(value))
    elif kind is tuple:
        _write_tuple(value, out)  # type: ignore[arg-type]
    elif kind is Secret:
        out.append(f"secret:{value.fingerprint()}")  # type: ignore[attr-defined]
    else:
        values = _values(kind)  # type: ignore[arg-type]
        out.append(kind.__name__)
        if getattr(kind, "DIGESTED", False):
            out.append(value.digest)  # type: ignore[attr-defined]
            return
        for one in values(value):
            # Most fields are None, so this avoids a call for each.
            if one is None:
                out.append("None")
            else:
                _write(one, out)
        out.append(";")


def _write_tuple(values: tuple[object, ...], out: list[str]) -> None:
    out.append("(")
    if values and getattr(type(values[0]), "DIGESTED", False) and len({*map(type, values)}) == 1:
        # A tuple may hold thousands of values (routes), so its class name is written once.
        out.append(type(values[0]).__name__)
        out += [value.digest for value in values]  # type: ignore[attr-defined]
    else:
        for value in values:
            _write(value, out)
    out.append(")")


def digest(*values: object) -> str:
    """Return 32 hexadecimal digits of SHA-256 over `values`.

    Values are dataclasses, tuples, texts, bytes, numbers, None and secrets. A value whose class is DIGESTED is
    represented by its own `digest`, a secret by its fingerprint. Digests of values with secrets are therefore
    comparable only within one process. Raises TypeError for other types.
    """
    out: list[str] = []
    for value in values:
        _write(value, out)
    return hashlib.sha256("\x1f".join(out).encode()).hexdigest()[:32]
