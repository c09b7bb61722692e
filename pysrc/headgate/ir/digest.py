"""Digests of IR values. Equal values have equal digests."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from headgate.document.lazy_dataclass import field_names
from headgate.document.secret import Secret
from headgate_engine.document.digest import write_values

# A digest, or the fingerprint of a secret, within an identity.
_DIGEST: Final = re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{16}|[0-9a-f]{32})(?![0-9a-f])")
# How the values of a class are read; see write_values(). Only classes of the IR have an entry.
_KINDS: Final[dict[type, tuple[Callable[[Any], Any], bool]]] = {
    Secret: (lambda one: f"secret:{one.fingerprint()}", True),
}


def _names(kind: type) -> tuple[str, ...]:
    try:
        return tuple(field_names(kind))
    except TypeError:
        raise TypeError(f"{kind.__name__} has no place in the IR") from None


def _reader(kind: type) -> tuple[Callable[[Any], Any], bool]:
    """Return how the values of an IR class are read. Raises TypeError for any other class."""
    _names(kind)
    if getattr(kind, "DIGESTED", False):
        return (lambda value: f"{kind.__name__}:{value.digest}"), True
    return _fields_reader(kind)


def _fields_reader(kind: type) -> tuple[Callable[[Any], Any], bool]:
    """Return how the fields of an IR class are read. Raises TypeError for any other class."""
    names = _names(kind)
    if len(names) > 1:
        return attrgetter(*names), False
    return (lambda value: tuple(getattr(value, name) for name in names)), False


def spelled(*values: object) -> str:
    """Return a text over `values` that is equal in all processes for equal values.

    Digests within identities are left out: they are comparable within one process only. Secrets are in it as plain
    digests: the text must not be shown, nor a digest of it that is quick to compute.
    """
    kinds: dict[type, tuple[Callable[[Any], Any], bool]] = {
        Secret: (lambda one: f"secret:{hashlib.sha256(one.reveal_bytes()).hexdigest()}", True)
    }
    out: list[str] = []
    write_values(values, kinds, _fields_reader, out)
    return _DIGEST.sub("*", "\x1f".join(out))


def digest(*values: object) -> str:
    """Return 32 hexadecimal digits of SHA-256 over `values`.

    Values are dataclasses, tuples, texts, bytes, numbers, None and secrets. A value whose class is DIGESTED is
    represented by its own `digest`, a secret by its fingerprint. Digests of values with secrets are therefore
    comparable only within one process. Raises TypeError for other types.
    """
    out: list[str] = []
    write_values(values, _KINDS, _reader, out)
    return hashlib.sha256("\x1f".join(out).encode()).hexdigest()[:32]
