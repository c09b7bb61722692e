"""Digests of IR values. Equal values have equal digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from headgate.document.lazy_dataclass import field_names
from headgate.document.secret import Secret
from headgate_engine.document.digest import write_values

# How the values of a class are read; see write_values(). Only classes of the IR have an entry.
_KINDS: Final[dict[type, tuple[Callable[[Any], Any], bool]]] = {
    Secret: (lambda one: f"secret:{one.fingerprint()}", True),
}


def _reader(kind: type) -> tuple[Callable[[Any], Any], bool]:
    """Return how the values of an IR class are read. Raises TypeError for any other class."""
    try:
        names = field_names(kind)
    except TypeError:
        raise TypeError(f"{kind.__name__} has no place in the IR") from None
    if getattr(kind, "DIGESTED", False):
        return (lambda value: f"{kind.__name__}:{value.digest}"), True
    if len(names) > 1:
        return attrgetter(*names), False
    return (lambda value: tuple(getattr(value, name) for name in names)), False


def digest(*values: object) -> str:
    """Return 32 hexadecimal digits of SHA-256 over `values`.

    Values are dataclasses, tuples, texts, bytes, numbers, None and secrets. A value whose class is DIGESTED is
    represented by its own `digest`, a secret by its fingerprint. Digests of values with secrets are therefore
    comparable only within one process. Raises TypeError for other types.
    """
    out: list[str] = []
    write_values(values, _KINDS, _reader, out)
    return hashlib.sha256("\x1f".join(out).encode()).hexdigest()[:32]
